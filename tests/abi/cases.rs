//! Does each function of the header live through every wrong call there is?
//!
//! `c/cases.txt` has a good call of each. From it and from the parameters that the header declares,
//! a C program is made that changes the call: NULL for each pointer, pointers that are not aligned,
//! structs of older and newer callers and of none, objects of another kind, closed ones, those of
//! the parent process, no room for results, a panic inside, and many threads. A function without a
//! line, or a line without a function, fails the test.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::header::{header, without_comments};
use crate::table::{Function, Line, Parameter, Table, Types, functions, table, types};

/// A function with its line.
struct Case<'a> {
    function: &'a Function,
    line: &'a Line,
    types: &'a Types,
    grown: &'a BTreeMap<String, String>,
}

impl Case<'_> {
    /// Parameters with their arguments, without the error.
    fn arguments(&self) -> impl Iterator<Item = (&Parameter, &str, bool)> {
        let arguments = self.line.arguments.iter();
        self.function.parameters.iter().zip(arguments).map(|(it, (text, may))| (it, &**text, *may))
    }

    fn has(&self, flag: &str) -> bool {
        self.line.flags.contains(flag)
    }

    /// The object that the function is called on.
    fn object(&self) -> Option<&str> {
        let (parameter, argument, _) = self.arguments().next()?;
        let is_object = parameter.stars == 1 && self.types.objects.contains(&parameter.base);
        (is_object && argument != "NULL").then_some(argument)
    }

    /// The call with an argument in the place of another, and with or without an error.
    fn call(&self, change: impl Fn(usize, &str) -> String, error: &str) -> String {
        let arguments = self.arguments().enumerate().map(|(at, (_, text, _))| change(at, text));
        let mut arguments: Vec<String> = arguments.collect();
        if self.line.plain.is_none() {
            arguments.push(error.to_owned());
        }
        format!("{}({})", self.function.name, arguments.join(", "))
    }

    fn changed(&self, place: usize, other: &str) -> String {
        let change = |at, text: &str| if at == place { other.to_owned() } else { text.to_owned() };
        self.call(change, "&w->error")
    }

    fn good(&self) -> String {
        self.call(|_, text| text.to_owned(), "&w->error")
    }

    /// What must be there for the call.
    fn needs(&self) -> Vec<&'static str> {
        let objects = ["log", "engine", "ring", "offsets", "times", "txns", "upload", "dir"];
        let text = self.good();
        let is_named = |object: &&str| {
            let word = format!("w->{object}");
            let mut behind = text.split(&word).skip(1);
            behind.any(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
        };
        let mut needed: Vec<&str> = objects.into_iter().filter(is_named).collect();
        if ["w->fetches", "w->items", "w->ops"].iter().any(|name| text.contains(name)) {
            needed.push("log");
        }
        needed
    }

    /// A new world with all that the call needs.
    fn begin(&self) -> String {
        let needs = self.needs().into_iter().map(|object| format!("    with_{object}(w);\n"));
        format!("    w = begin();\n{}", needs.collect::<String>())
    }

    fn expect(&self, change: &str, expected: &str, call: &str) -> String {
        let name = &self.function.name;
        format!("    expect(\"{name}\", \"{change}\", {expected}, {call});\n")
    }

    /// Pointers that lie, none of which changes anything.
    fn wrong_pointers(&self) -> String {
        let mut code = String::new();
        for (at, (parameter, argument, may_be_null)) in self.arguments().enumerate() {
            if parameter.stars == 0 || may_be_null || argument == "NULL" {
                continue;
            }
            let name = &parameter.name;
            let wrong = |what: &str, other: &str| {
                let change = format!("{what} {name}");
                self.expect(&change, "SILT_E_INVALID_ARGUMENT", &self.changed(at, other))
            };
            code += &wrong("NULL for", "NULL");
            let is_bytes = matches!(parameter.base.as_str(), "void" | "char" | "uint8_t");
            if !is_bytes || parameter.stars > 1 {
                code += &wrong("one byte behind", &format!("(void *)((char *)({argument}) + 1)"));
            }
            if at == 0 && self.object().is_some() {
                let other = if argument == "w->ring" { "w->offsets" } else { "w->ring" };
                code += "    with_ring(w);\n    with_offsets(w);\n";
                code += &wrong("another kind of object for", &format!("(void *){other}"));
            }
        }
        code
    }

    /// Structs of sizes that cannot be, or that ask for what is not known.
    fn wrong_sizes(&self) -> String {
        let mut code = String::new();
        for (parameter, argument, _) in self.growing() {
            let name = &parameter.name;
            let size = format!("    {argument}.it.struct_size");
            let all = format!("(uint32_t)sizeof {argument}");
            code += &format!("{size} = 4;\n");
            let call = self.good();
            code += &self.expect(&format!("4 bytes of {name}"), "SILT_E_INVALID_ARGUMENT", &call);
            if parameter.is_const || self.has("inout") {
                code += &format!("{size} = {all};\n    {argument}.later = LATER;\n");
                let change = format!("a later field of {name}");
                code += &self.expect(&change, "SILT_E_UNSUPPORTED", &call);
                code += &format!("    {argument}.later = 0;\n");
            }
            code += &format!("{size} = (uint32_t)sizeof {argument}.it;\n");
        }
        code
    }

    /// The parameters that grow, with the variables that are given for them.
    fn growing(&self) -> Vec<(&Parameter, &str, Option<&String>)> {
        let is_growing = |it: &Parameter| it.stars == 1 && self.types.growing.contains(&it.base);
        let structs = self.arguments().filter(|(parameter, ..)| is_growing(parameter));
        structs
            .map(|(parameter, argument, _)| {
                let variable = argument.strip_prefix('&').and_then(|it| it.strip_suffix(".it"));
                let variable = variable.unwrap_or_else(|| panic!("{argument} is none of GROWING"));
                (parameter, variable, self.grown.get(&parameter.base))
            })
            .collect()
    }

    /// Callers that are right: with larger structs, with smaller ones, with what may be NULL.
    fn right_calls(&self) -> String {
        let mut code = String::new();
        let growing = self.growing();
        for (parameter, variable, _) in &growing {
            code += &format!("    {variable}.it.struct_size = (uint32_t)sizeof {variable};\n");
            if !parameter.is_const && !self.has("inout") {
                code += &format!("    {variable}.later = LATER;\n");
            }
        }
        code += &self.expect("as it is", "SILT_OK", &self.good());
        for (parameter, variable, _) in &growing {
            if !parameter.is_const && !self.has("inout") {
                code += &format!("    CHECK({variable}.later == LATER);\n");
            }
        }
        code += "    end(w);\n";
        if growing.iter().any(|(_, _, field)| field.is_some()) {
            code += &self.begin();
            for (parameter, variable, field) in &growing {
                let Some(field) = field else { continue };
                let size = format!("offsetof({}, {field})", parameter.base);
                code += &format!("    {variable}.it.struct_size = {size};\n");
            }
            code += &self.expect("by an older caller", "SILT_OK", &self.good());
            code += "    end(w);\n";
        }
        let nulls = |at: usize, text: &str| match self.line.arguments.get(at) {
            Some((_, true)) => "NULL".to_owned(),
            _ => text.to_owned(),
        };
        code += &self.begin();
        let call = self.call(nulls, "NULL");
        code += &self.expect("with as little as possible", "SILT_OK", &call);
        code + "    end(w);\n"
    }

    /// Without room for what is found.
    fn no_room(&self) -> String {
        let names = self.function.parameters.iter().map(|it| it.name.as_str());
        let Some(at) = names.clone().position(|name| name == "capacity") else {
            return String::new();
        };
        let expected = match (self.has("short"), self.has("fits")) {
            (true, false) => "SILT_E_SHORT_BUFFER",
            (false, true) => "SILT_OK",
            // Room for bytes is one place of many.
            _ if self.function.name == "silt_log_read" => return String::new(),
            _ => panic!("{}: `short` or `fits`?", self.function.name),
        };
        let change = |place: usize, text: &str| match () {
            () if place == at => "0".to_owned(),
            () if place + 1 == at => "NULL".to_owned(),
            () => text.to_owned(),
        };
        self.expect("without room", expected, &self.call(change, "&w->error"))
    }

    /// A panic inside, after which an object is of no use, nor are logs that structs name.
    fn panic(&self) -> String {
        let mut code = self.begin();
        let names_log = ["w->fetches", "w->items", "w->rebuilds"]
            .iter()
            .any(|name| self.line.arguments.iter().any(|(text, _)| text == name));
        if names_log {
            code += "    with_log(w);\n    w->rebuilds[0].log = w->log;\n";
        }
        code += "    silt_test_panic_next();\n";
        code += &self.expect("a panic inside", "SILT_E_BUG", &self.good());
        code += "    CHECK(strstr(w->error.message, \"as it was asked to\") != NULL);\n";
        if self.object().is_some() {
            code += &self.expect("behind a panic", "SILT_E_CLOSED", &self.good());
        }
        if names_log {
            let call = "silt_log_offsets(w->log, &w->found_offsets.it, &w->error)";
            code += &self.expect("the log behind a panic", "SILT_E_CLOSED", call);
        }
        code + "    end(w);\n"
    }

    /// On an object that is shut, where that can be told from one that is given back.
    fn shut(&self) -> String {
        let shut = match self.object() {
            Some("w->log") => "silt_log_stop(w->log, NULL)",
            Some("w->engine") => "silt_engine_stop(w->engine, -1, 1, NULL, NULL)",
            Some(index @ ("w->offsets" | "w->times" | "w->txns")) => {
                &format!("silt_index_shut({index}, NULL)")
            }
            _ => return String::new(),
        };
        let expected = if self.has("stays") { "SILT_OK" } else { "SILT_E_CLOSED" };
        let mut code = format!("{}    EXPECT(SILT_OK, {shut});\n", self.begin());
        code += &self.expect("shut", expected, &self.good());
        code + "    end(w);\n"
    }

    /// The function of the program that tries all this.
    fn code(&self) -> String {
        let name = &self.function.name;
        let mut code = format!("static void try_{name}(void) {{\n    struct world *w;\n");
        match &self.line.plain {
            Some(value) => {
                code += "    w = begin();\n";
                let null = |at: usize, text: &str| match self.function.parameters.get(at) {
                    Some(parameter) if parameter.stars > 0 => "NULL".to_owned(),
                    _ => text.to_owned(),
                };
                let call = self.call(null, "");
                code += &match value.as_str() {
                    "" => format!("    {call};\n"),
                    value => format!("    CHECK({call} == {value});\n"),
                };
                code += "    end(w);\n";
            }
            None => {
                code += &self.begin();
                code += &self.wrong_pointers();
                code += &self.wrong_sizes();
                code += &self.no_room();
                code += &self.right_calls();
                code += &self.panic();
                code += &self.shut();
            }
        }
        code + "}\n\n"
    }

    /// The call that threads make.
    fn call_of_many(&self) -> String {
        let (name, call) = (&self.function.name, self.good());
        format!("static silt_status_t call_{name}(struct world *w) {{\n    return {call};\n}}\n\n")
    }
}

/// The program that `c/cases.txt` and the header make.
pub fn program() -> String {
    let header = without_comments(&header());
    let (functions, types) = (functions(&header), types(&header));
    let Table { calls, grown, .. } = table();
    let listed: Vec<&str> = calls.iter().map(|line| line.name.as_str()).collect();
    let declared: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(listed, declared, "cases.txt has the functions of the header in their order");
    let cases: Vec<Case<'_>> = functions
        .iter()
        .zip(&calls)
        .map(|(function, line)| Case { function, line, types: &types, grown: &grown })
        .collect();
    for case in &cases {
        let has_status = case.function.result == "silt_status_t";
        assert_eq!(has_status, case.line.plain.is_none(), "{}", case.function.name);
        let given = case.line.arguments.len() + usize::from(has_status);
        assert_eq!(given, case.function.parameters.len(), "{}", case.function.name);
    }
    let mut code = String::from("#include \"cases.h\"\n\n");
    for case in &cases {
        code += &case.code();
    }
    let on_objects: Vec<&Case<'_>> =
        cases.iter().filter(|it| it.line.plain.is_none() && it.object().is_some()).collect();
    code += &in_another_process(&on_objects);
    // One that shuts an object would leave nothing for the others to do.
    let living: Vec<&Case<'_>> =
        on_objects.iter().filter(|case| !case.has("shuts")).copied().collect();
    for case in &living {
        code += &case.call_of_many();
    }
    code += "int main(int argc, char **argv) {\n    CHECK(argc == 2);\n    home = argv[1];\n";
    for case in &cases {
        let _ = writeln!(code, "    try_{}();", case.function.name);
    }
    code += "    try_in_another_process();\n    static const call_t calls[] = {\n";
    for case in &living {
        let _ = writeln!(code, "        call_{},", case.function.name);
    }
    let _ = writeln!(code, "    }};\n    call_from_many_threads(calls, {});", living.len());
    code + "    puts(\"ok\");\n    return 0;\n}\n"
}

/// After a fork, no function takes an object of the parent.
fn in_another_process(cases: &[&Case<'_>]) -> String {
    let mut code = String::from(
        "static void try_in_another_process(void) {\n    struct world *w = begin();\n    \
         with_all(w);\n    pid_t child = fork();\n    CHECK(child >= 0);\n    if (child == 0) {\n",
    );
    for case in cases {
        code += &format!("    {}", case.expect("after a fork", "SILT_E_FORKED", &case.good()));
    }
    code + "        _exit(0);\n    }\n    int status = 1;\n    CHECK(waitpid(child, &status, 0) == \
            child && status == 0);\n    end(w);\n}\n\n"
}

#[test]
fn every_function_lives_through_every_wrong_call() {
    crate::programs::Program::from_file("cases.c", &[]).run_in_a_directory();
}
