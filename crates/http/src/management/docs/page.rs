//! The page: every operation in its group, with a command to try it, then every schema.

use serde_json::Value;

use super::curl::curl;
use super::html::{escaped, prose};
use super::schema_html::{ALWAYS, REQUIRED, contents, json, kind, resolved, row};
use crate::openapi::Group;

/// The whole page. `groups` give the order of the operations, `document` their texts.
pub(super) fn page(groups: &[Group], document: &Value) -> String {
    let info = &document["info"];
    let (title, version) = (said(info, "title"), said(info, "version"));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} API</title>\n\
         <link rel=\"stylesheet\" href=\"/v1/docs/style.css\">\n</head>\n<body>\n\
         <header><h1>{title} API</h1><p>{}</p><p>Version {version}, for programs: \
         <a href=\"/v1/openapi.json\">openapi.json</a></p></header>\n",
        prose(info["description"].as_str().unwrap_or_default()),
    );
    html.push_str(&navigation(groups));
    html.push_str("<main>\n");
    for group in groups {
        html.push_str(&section(group, document));
    }
    html.push_str(&schemas(document));
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn navigation(groups: &[Group]) -> String {
    let links = groups
        .iter()
        .map(|group| format!("<li><a href=\"#{}\">{}</a></li>", anchor(group.name), escaped(group.name)));
    let links: String = links.collect();
    format!("<nav><ul>{links}<li><a href=\"#schemas\">Schemas</a></li></ul></nav>\n")
}

fn section(group: &Group, document: &Value) -> String {
    let operations = group.operations.iter().map(|operation| {
        let (path, method) = (operation.document_path(), operation.method());
        shown(document, &path, method, &document["paths"][&path][method])
    });
    format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n<p>{}</p>\n{}</section>\n",
        anchor(group.name),
        escaped(group.name),
        prose(group.about),
        operations.collect::<String>()
    )
}

fn shown(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let about = operation["description"].as_str().map(|about| format!("<p>{}</p>\n", prose(about)));
    let free = if operation.get("security").is_some() { "<p>Needs no key.</p>\n" } else { "" };
    format!(
        "<details class=\"operation\">\n<summary><span class=\"{method}\">{method}</span> \
         <code>{path}</code> <span class=\"says\">{summary}</span></summary>\n<div id=\"{id}\"></div>{about}{free}<pre><code>{command}</code></pre>\n\
         {parameters}{body}{answers}</details>\n",
        id = said(operation, "operationId"),
        path = escaped(path),
        summary = prose(operation["summary"].as_str().unwrap_or_default()),
        about = about.unwrap_or_default(),
        command = escaped(&curl(document, path, method, operation)),
        parameters = parameters(operation),
        body = body(document, operation),
        answers = answers(document, operation),
    )
}

fn parameters(operation: &Value) -> String {
    let Some(parameters) = operation["parameters"].as_array() else { return String::new() };
    let rows = parameters.iter().map(|parameter| {
        let about = parameter["description"].as_str().unwrap_or("in the path");
        let name = parameter["name"].as_str().unwrap_or_default();
        let mark = if parameter["required"] == true { REQUIRED } else { "" };
        row(name, mark, &parameter["schema"], about)
    });
    format!("<h3>Parameters</h3>\n<table>\n{}</table>\n", rows.collect::<String>())
}

fn body(document: &Value, operation: &Value) -> String {
    let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") else {
        return String::new();
    };
    let example = &resolved(document, schema)["example"];
    let example = if example.is_null() { String::new() } else { json(example) };
    format!(
        "<h3>Body</h3>\n{example}<details><summary>{}</summary>\n{}</details>\n",
        kind(schema),
        contents(document, schema, REQUIRED)
    )
}

fn answers(document: &Value, operation: &Value) -> String {
    let answers = operation["responses"].as_object().into_iter().flatten();
    let answer = |(status, response): (&String, &Value)| {
        let response = resolved(document, response);
        let schema = response.pointer("/content/application~1json/schema");
        let headers = response["headers"].as_object().into_iter().flatten();
        let headers: Vec<_> = headers.map(|(name, _)| format!("<code>{}</code>", escaped(name))).collect();
        format!(
            "<details class=\"answer\"><summary><b>{status}</b> {} {}</summary>\n<p>Headers: {}</p>\n{}</details>\n",
            prose(response["description"].as_str().unwrap_or_default()),
            schema.map_or_else(String::new, kind),
            headers.join(" "),
            schema.map_or_else(String::new, |schema| contents(document, schema, ALWAYS)),
        )
    };
    format!("<h3>Answers</h3>\n{}", answers.map(answer).collect::<String>())
}

fn schemas(document: &Value) -> String {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    let shown = schemas.map(|(name, schema)| {
        let is_sent = name.ends_with("Input") || name.ends_with("Request");
        format!(
            "<details class=\"schema\"><summary><code>{name}</code></summary>\n\
             <div id=\"schema-{name}\"></div>{}{}</details>\n",
            contents(document, schema, if is_sent { REQUIRED } else { ALWAYS }),
            schema.get("example").map_or_else(String::new, json),
            name = escaped(name),
        )
    });
    format!("<section id=\"schemas\">\n<h2>Schemas</h2>\n{}</section>\n", shown.collect::<String>())
}

/// The id of a group's heading, for links.
fn anchor(name: &str) -> String {
    name.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

fn said(value: &Value, name: &str) -> String {
    escaped(value[name].as_str().unwrap_or_default())
}
