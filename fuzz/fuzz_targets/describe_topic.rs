//! DescribeTopicPartitions, and the DescribeTopic request of KIP-966's first draft.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::replica::describe_topic::{
    decode_describe_request, decode_describe_response, decode_describe_topic_seed,
    encode_describe_request, encode_describe_response, encode_describe_topic_seed,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 3 {
        0 => {
            if let Ok(topics) = decode_describe_topic_seed(bytes, 0) {
                let again = encode_describe_topic_seed(&topics).expect("our own");
                assert_eq!(decode_describe_topic_seed(&again, 0).expect("our own"), topics);
            }
        }
        1 => {
            if let Ok(request) = decode_describe_request(bytes, 0) {
                let again = encode_describe_request(&request).expect("our own");
                assert_eq!(decode_describe_request(&again, 0).expect("our own"), request);
            }
        }
        _ => {
            if let Ok(response) = decode_describe_response(bytes, 0) {
                let again = encode_describe_response(&response).expect("our own");
                assert_eq!(decode_describe_response(&again, 0).expect("our own"), response);
            }
        }
    }
});
