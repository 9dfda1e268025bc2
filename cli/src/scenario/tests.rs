use serde_json::{Map, Value};

use super::answers::answer;

fn answers(text: &str) -> Map<String, Value> {
    answer(text.as_bytes(), 1_700_000_000_000).unwrap().0
}

/// The answers under these keys.
fn of(text: &str, keys: &[&str]) -> Vec<Value> {
    let answers = answers(text);
    keys.iter().map(|key| answers.get(*key).cloned().unwrap_or(Value::Null)).collect()
}

#[test]
fn an_epoch_that_another_leader_ended_counts_up_to_its_end() {
    let text = r#"{"epochs": [[5,100],[6,120]],
        "remote": [{"id":"r1","start":100,"end":150,"epochs":{"5":100}}]}"#;
    assert_eq!(of(text, &["highest_remote_offset", "highest_remote_epoch"]), [119, 5]);
    let text = r#"{"epochs": [[2,0],[3,80]], "log_end": 95,
        "remote": [{"id":"x","start":0,"end":60,"epochs":{"2":0}}]}"#;
    assert_eq!(of(text, &["highest_remote_offset"]), [60]);
    // A copy that was not finished does not count.
    let text = text.replace(r#""id":"x""#, r#""id":"x","state":"COPY_SEGMENT_STARTED""#);
    assert_eq!(of(&text, &["highest_remote_offset"]), [-1]);
}

#[test]
fn segments_are_told_apart_by_lineage() {
    let text = r#"{"epochs": [[5,10],[7,15],[9,100]], "log_start": 10, "log_end": 200, "remote": [
        {"id":"a","start":5,"end":50,"epochs":{"3":5,"5":10,"7":15}},
        {"id":"b","start":14,"end":150,"epochs":[[5,14],[7,15],[9,100]]},
        {"start":20,"end":90,"epochs":{"8":20}}]}"#;
    assert_eq!(
        of(text, &["within", "outside"]),
        [serde_json::json!(["a", "b"]), serde_json::json!([2])]
    );
}

/// What a leader has, and where a follower that ends at `end` starts.
fn follower(start: i64, local_start: i64, end: i64, highest: i64, follower: i64) -> Vec<Value> {
    let text = format!(
        r#"{{"leader": {{"log_start":{start},"local_log_start":{local_start},"log_end":{end},
        "highest_remote_offset":{highest}}}, "follower": {{"log_end":{follower}}}}}"#
    );
    of(&text, &["earliest_pending_upload_offset", "follower", "follower_start"])
}

#[test]
fn a_follower_starts_where_uploads_end_or_waits() {
    use serde_json::json;
    assert_eq!(follower(0, 300, 500, -1, 0), [json!(-1), json!("retry"), Value::Null]);
    assert_eq!(follower(0, 200, 500, 299, 0), [json!(300), json!("build"), json!(300)]);
    assert_eq!(follower(40, 40, 90, -1, 0), [json!(40), json!("restart"), json!(40)]);
    assert_eq!(follower(0, 0, 90, -1, 0), [json!(0), json!("fetch"), json!(0)]);
    // All is uploaded; a hole; nothing left of what was uploaded.
    assert_eq!(follower(0, 6, 6, 5, 0), [json!(6), json!("build"), json!(6)]);
    assert_eq!(follower(0, 8, 12, 5, 0), [json!(8), json!("build"), json!(8)]);
    assert_eq!(follower(287, 287, 330, 279, 0), [json!(287), json!("restart"), json!(287)]);
    // Followers that have records.
    assert_eq!(follower(0, 200, 500, 299, 100), [json!(300), json!("build"), json!(200)]);
    assert_eq!(follower(0, 200, 500, 299, 250), [json!(300), json!("fetch"), json!(250)]);
    assert_eq!(follower(0, 200, 500, 299, 600), [json!(300), json!("truncate"), json!(500)]);
    assert_eq!(follower(50, 200, 500, 299, 20), [json!(300), json!("build"), json!(200)]);
}

#[test]
fn a_follower_that_is_cut_in_front_of_its_local_log_is_built() {
    // spec: tiered-faults T4
    let text = |rest: &str| {
        format!(
            r#"{{"leader": {{"log_start":0,"local_log_start":200,"log_end":500,
            "highest_remote_offset":299{rest}}}, "follower": {{"log_start":0,
            "local_log_start":550,"log_end":600}}}}"#
        )
    };
    let keys = ["follower", "follower_start"];
    let json = |what: &str, start: i64| [Value::from(what), Value::from(start)];
    assert_eq!(of(&text(""), &keys), json("build", 300));
    // Where the leader has nothing before that either, it goes on.
    let text = text("").replace(r#""log_start":0,"local_log_start":200"#, r#""log_start":500"#);
    assert_eq!(of(&text, &keys), json("truncate", 500));
}

#[test]
fn without_the_shortcut_a_follower_starts_at_the_local_log() {
    let text = |key: &str| {
        format!(
            r#"{{"{key}": false, "follower": {{}}, "leader": {{"log_start":0,"local_log_start":200,
            "log_end":500,"highest_remote_offset":299}}}}"#
        )
    };
    let keys = ["earliest_pending_upload_offset", "follower_start"];
    assert_eq!(of(&text("feature_on"), &keys), [300, 200]);
    assert_eq!(of(&text("remote_enabled"), &keys), [-1, 0]);
}

#[test]
fn the_epoch_before_a_start_is_that_of_the_last_record_there() {
    let text = r#"{"epochs": [[0,20],[1,85],[3,90],[4,98]], "start_offset": 90}"#;
    assert_eq!(of(text, &["aux_epoch", "previous_offset"]), [1, 89]);
    let text = r#"{"epochs": [[0,20],[1,85],[3,90]], "start_offset": 95, "log_end": 99}"#;
    assert_eq!(of(text, &["aux_epoch"]), [3]);
    let text = r#"{"epochs": [[0,20]], "start_offset": 95}"#;
    assert_eq!(of(text, &["aux_epoch"]), [0]);
}

#[test]
fn local_retention_follows_retention_unless_it_is_set() {
    let keys = ["effective_local_retention_ms", "effective_local_retention_bytes"];
    let text = r#"{"retention_ms":1000,"local_retention_ms":-2,
        "retention_bytes":500,"local_retention_bytes":-2}"#;
    assert_eq!(of(text, &keys), [1000, 500]);
    assert_eq!(of(r#"{"retention_bytes":500}"#, &keys), [604_800_000, 500]);
    assert_eq!(of(r#"{"local_retention_ms":7}"#, &keys), [7, -1]);
    let text = r#"{"retention_ms":1000,"local_retention_ms":7,"remote_log_copy_disable":true}"#;
    assert_eq!(of(text, &keys), [1000, -1]);
}

#[test]
fn a_local_retention_that_is_no_part_of_the_retention_is_refused() {
    let refused = |text: &str| answers(text).contains_key("refused");
    assert!(refused(r#"{"retention_bytes":500,"local_retention_bytes":600}"#));
    assert!(refused(r#"{"retention_ms":500,"local_retention_ms":-1}"#));
    assert!(!refused(r#"{"retention_ms":500,"local_retention_ms":500}"#));
}

/// Three segments, the second of which was never finished.
fn half_copied(more: &str) -> Map<String, Value> {
    answers(&format!(
        r#"{{{more} "remote": [
        {{"id":"a","start":0,"end":9,"size":100,"state":"COPY_SEGMENT_FINISHED","max_timestamp":1}},
        {{"id":"b","start":10,"end":19,"size":100,"state":"COPY_SEGMENT_STARTED","max_timestamp":5}},
        {{"id":"c","start":10,"end":19,"size":100,"max_timestamp":5}}]}}"#
    ))
}

#[test]
fn a_copy_that_was_not_finished_takes_no_part_of_the_retention() {
    use serde_json::json;
    for (more, deleted, new_start) in [
        (r#""retention_bytes": 200,"#, json!([]), None),
        (r#""retention_bytes": 150,"#, json!([]), None),
        (r#""retention_bytes": 100,"#, json!(["a"]), Some(10)),
        (r#""retention_ms": 5, "now_ms": 8,"#, json!(["a"]), Some(10)),
        (r#""retention_ms": -1, "now_ms": 8,"#, json!([]), None),
        (r#""retention_bytes": -1,"#, json!([]), None),
        ("", json!([]), None),
    ] {
        let answers = half_copied(more);
        assert_eq!(answers.get("total"), Some(&json!(200)), "{more}");
        assert_eq!(answers.get("delete"), Some(&deleted), "{more}");
        assert_eq!(answers.get("dangling"), Some(&json!(["b"])), "{more}");
        assert_eq!(answers.get("new_log_start").and_then(Value::as_i64), new_start, "{more}");
    }
}

#[test]
fn files_that_cannot_be_are_told_what_is_wrong() {
    for (text, message) in [
        ("", "this is no JSON: "),
        ("[1]", "this is no JSON object"),
        ("{}", "there is no question in it"),
        (r#"{"epochs": [[1,0]]}"#, "there is no question in it"),
        (r#"{"epochs": [[1]], "remote": []}"#, "epochs is [[1]], which is no list of leader"),
        (r#"{"epochs": [[-1,0]], "remote": []}"#, "epochs is [[-1,0]]"),
        (r#"{"epochs": [[1,5],[2,4]], "remote": []}"#, "epochs is [[1,5],[2,4]], which is no"),
        (r#"{"epochs": [], "remote": [{}]}"#, "remote[0].start is missing"),
        (r#"{"epochs": [], "remote": [{"start":1}]}"#, "remote[0].end is missing"),
        (r#"{"epochs": [], "remote": [{"start":5,"end":4}]}"#, "remote[0].end is 4, before"),
        (r#"{"epochs": [], "remote": [{"start":"a"}]}"#, "remote[0].start is \"a\", which is no"),
        (r#"{"remote": [{"start":0,"end":4,"size":-1}]}"#, "remote[0].size is none that a"),
        (r#"{"remote": [{"start":0,"end":4,"state":"x"}]}"#, "remote[0].state is \"x\", which"),
        (r#"{"retention_ms": 1.5}"#, "retention_ms is 1.5, which is no whole number"),
        (r#"{"leader": 1}"#, "leader is 1, which is no object"),
        (r#"{"leader": {"log_start": -2}}"#, "leader.log_start is -2, which is no offset"),
    ] {
        let error = answer(text.as_bytes(), 1_700_000_000_000).unwrap_err();
        assert!(error.message().starts_with(message), "{text}: {error}");
    }
}

#[test]
fn extreme_numbers_give_an_answer() {
    let max = i64::MAX;
    for (start, local_start, end, highest, log) in
        [(0, 0, max, max, 0), (max, max, max, max, max), (0, max, 0, -1, max), (9, 0, 3, max, 5)]
    {
        assert_eq!(follower(start, local_start, end, highest, log).len(), 3);
    }
    let text = format!(r#"{{"epochs": [[2147483647,{max}]], "start_offset": {max}}}"#);
    assert_eq!(answers(&text).len(), 3);
}

#[test]
fn keys_that_no_question_was_asked_with_are_named() {
    let text = r#"{"epochs": [[0,0]], "log_ende": 9, "note": null, "remote": [
        {"id":"a","start":0,"end":5,"stat":"COPY_SEGMENT_STARTED"}, {"start":6,"end":9,"stat":1}],
        "leader": {"log_end": 10, "highest_remote": 5, "local_log_start": 0}}"#;
    let (_, unused) = answer(text.as_bytes(), 0).unwrap();
    let unused: Vec<_> = unused.iter().map(String::as_str).collect();
    assert_eq!(unused, ["leader.highest_remote", "log_ende", "note", "remote.stat"]);
    let (_, unused) = answer(br#"{"epochs": [[0,20],[1,85]], "start_offset": 90}"#, 0).unwrap();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn a_leader_epoch_that_begins_twice_is_refused() {
    let error = answer(br#"{"epochs": [[0,0],[1,5],[1,7]], "start_offset": 9}"#, 0).unwrap_err();
    assert!(error.to_string().contains("each of them once"), "{error}");
}
