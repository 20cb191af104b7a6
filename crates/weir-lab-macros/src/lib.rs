//! `#[root_test]`, for weir-lab.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// A test that needs a private network. Where it cannot have one, it says `SKIP:` and why, or fails where all tests must run
/// (`weir_lab::require_root`). Its name begins with `root_`, or that of its module does.
///
/// ```ignore
/// #[root_test]
/// fn root_a_frame_arrives() {
///     let network = Network::new(Veth::default()).expect("a private network");
/// }
/// ```
#[proc_macro_attribute]
pub fn root_test(_arguments: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let name = tokens.iter().position(is_fn).and_then(|at| tokens.get(at + 1)).map(ToString::to_string);
    let (Some(name), Some(TokenTree::Group(body))) = (name, tokens.pop()) else {
        return parse("compile_error!(\"#[root_test] is for functions\");");
    };
    let mut guarded = parse(&format!("if !::weir_lab::require_root({name:?}) {{ return; }}"));
    guarded.extend(body.stream());
    let mut test = parse("#[test]");
    test.extend(tokens);
    test.extend([TokenTree::Group(Group::new(Delimiter::Brace, guarded))]);
    test
}

fn parse(code: &str) -> TokenStream {
    code.parse().expect("it is Rust")
}
