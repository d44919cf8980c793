//! Hostile request bodies, checked against the tables of fields that the server has.

use longshore_hostile::{JSON_TOKENS, cases, mutated, text};
use longshore_model::{Endpoint, EndpointId, Millis, Template};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::endpoint_fields::ENDPOINT_FIELDS;
use super::fields::{Access, Field, FieldKind, Verb, read_members};
use super::from_fields::{Creation, changed_endpoint, changed_template, new_endpoint, new_template};
use super::template_fields::TEMPLATE_FIELDS;
use super::views::{self, Extras};

const BIRTH: Creation<'static> = Creation { entropy: 7, at: Millis(5), by: "key-1" };
/// A secret that no response and no error may contain.
const SECRET: &str = "hushhush";

/// A value that the field accepts, often at its limits.
fn fitting(kind: FieldKind) -> BoxedStrategy<Value> {
    let words = |words: &'static [&'static str]| prop::sample::select(words.to_vec());
    match kind {
        FieldKind::Text { chars_max } => prop_oneof![
            text().prop_map(|text| text.replace('\0', "")),
            Just("ü".repeat(chars_max)),
            Just(String::new())
        ]
        .prop_map(move |text| text.chars().take(chars_max).collect::<String>().into())
        .boxed(),
        FieldKind::Secret { .. } => Just(SECRET).prop_map(Value::from).boxed(),
        // Longer than every reserved slug.
        FieldKind::Slug => "[A-Za-z0-9][A-Za-z0-9._-]{20,40}(/[A-Za-z0-9][A-Za-z0-9._-]{0,20}){0,2}"
            .prop_map(Value::from)
            .boxed(),
        FieldKind::Form { matches, .. } if matches("12.8") => Just(json!("12.8")).boxed(),
        FieldKind::Form { matches, .. } if matches("/ping") => "/[a-z]{0,9}".prop_map(Value::from).boxed(),
        FieldKind::Forms { .. } => {
            prop::collection::vec("[0-9]{1,2}\\.[0-9]", 0..3).prop_map(Value::from).boxed()
        }
        FieldKind::Form { .. } => {
            "(http|https|HTTP)://[a-z0-9]{1,9}(:[1-9][0-9]{0,3})?/[a-z?=]{0,9}".prop_map(Value::from).boxed()
        }
        FieldKind::Integer { min, max } => {
            prop_oneof![Just(min), Just(max), min..=max].prop_map(Value::from).boxed()
        }
        FieldKind::Number { min, max } => {
            prop_oneof![Just(min), Just(max), min..=max].prop_map(Value::from).boxed()
        }
        FieldKind::Flag => any::<bool>().prop_map(Value::from).boxed(),
        FieldKind::Word(known) => words(known).prop_map(Value::from).boxed(),
        FieldKind::Words(known) => prop::collection::vec(words(known), 0..3).prop_map(Value::from).boxed(),
        FieldKind::Texts => prop::collection::vec("[^\\x00]{0,8}", 0..3).prop_map(Value::from).boxed(),
        FieldKind::Environment => {
            let value = prop_oneof![Just(json!(SECRET)), Just(json!({ "secret": "HF_TOKEN" }))];
            prop::collection::hash_map("[A-Za-z_][A-Za-z0-9_]{0,5}", value, 0..3)
                .prop_map(|entries| entries.into_iter().collect())
                .boxed()
        }
        FieldKind::Members => Just(json!({ "a": 1 })).boxed(),
        FieldKind::Json { is_object: true, .. } => Just(json!({ "type": "object" })).boxed(),
        FieldKind::Json { .. } => {
            prop_oneof![Just(json!([1.0, "ä"])), Just(json!({ "input": {} })), text().prop_map(Value::from)]
                .boxed()
        }
        FieldKind::Object(fields) => body(fields, Verb::Create).boxed(),
        FieldKind::Objects => Just(json!([])).boxed(),
        FieldKind::ObjectsOf(fields) => {
            prop::collection::vec(body(fields, Verb::Create), 0..3).prop_map(Value::from).boxed()
        }
        FieldKind::Time => Just(json!("2030-01-31T12:00:00Z")).boxed(),
        FieldKind::Endpoints => {
            prop_oneof![Just(json!([])), Just(json!(["*"])), Just(json!([EndpointId::mint(1)]))].boxed()
        }
    }
}

/// A value that only fields of its own kind accept.
fn foreign(kind: FieldKind) -> impl Strategy<Value = Value> {
    let any = prop_oneof![
        Just(json!(null)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!(u64::MAX)),
        Just(json!([[]])),
        Just(json!({ "=": SECRET })),
        Just(json!({ "a": [SECRET] })),
        Just(json!("nul \0")),
    ];
    any.prop_filter("a value of this kind", move |value| match kind {
        FieldKind::Integer { max, .. } => value.as_u64().is_none_or(|number| number > max),
        FieldKind::Number { min, max } => value.as_f64().is_none_or(|number| !(min..=max).contains(&number)),
        _ => true,
    })
}

fn is_settable(field: &Field, verb: Verb) -> bool {
    match field.access {
        Access::Write | Access::Hidden => true,
        Access::Create | Access::WriteOnly => verb == Verb::Create,
        Access::Read => false,
    }
}

/// A body with some of the fields, each with an accepted value.
fn body(fields: &'static [Field], verb: Verb) -> impl Strategy<Value = Value> {
    let settable: Vec<&'static Field> = fields.iter().filter(|field| is_settable(field, verb)).collect();
    let count = settable.len();
    prop::sample::subsequence(settable, 0..=count).prop_flat_map(|chosen| {
        let members: Vec<_> = chosen
            .into_iter()
            .map(|field| fitting(field.kind).prop_map(|value| (field.name.to_owned(), value)))
            .collect();
        members.prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

fn read(fields: &[Field], body: &Value, verb: Verb) -> Result<Map<String, Value>, TestCaseError> {
    read_members(fields, body.to_string().as_bytes(), verb)
        .map_err(|failure| TestCaseError::fail(format!("{body} is refused: {failure:?}")))
}

fn template() -> Template {
    let members = json!({ "name": "t", "imageName": "i", "dockerStartCmd": ["run"], "env": { "A": SECRET } });
    new_template(read(TEMPLATE_FIELDS, &members, Verb::Create).unwrap(), BIRTH).unwrap()
}

fn endpoint() -> Endpoint {
    new_endpoint(Map::new(), &template(), BIRTH).unwrap()
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_body_whose_every_value_fits_is_read_and_no_other(
        body in body(ENDPOINT_FIELDS, Verb::Create),
        (at, foreign) in (0..ENDPOINT_FIELDS.len()).prop_flat_map(|at| (Just(at), foreign(ENDPOINT_FIELDS[at].kind))),
    ) {
        let field = &ENDPOINT_FIELDS[at];
        read(ENDPOINT_FIELDS, &body, Verb::Create)?;
        let fits = match field.kind {
            FieldKind::Json { is_object, .. } => !is_object || foreign.is_object(),
            _ => false,
        } || (field.nullable && foreign.is_null());
        if !fits {
            let mut spoiled = body;
            spoiled[field.name] = foreign;
            let failure = read_members(ENDPOINT_FIELDS, spoiled.to_string().as_bytes(), Verb::Create).unwrap_err();
            let shown = format!("{failure:?}");
            prop_assert_eq!(failure.status().as_u16(), 400);
            prop_assert!(shown.contains(field.name), "{} is not named: {shown}", field.name);
            let has_secrets = matches!(field.kind, FieldKind::Environment | FieldKind::Object(_));
            prop_assert!(shown.len() < 2_000 && !(has_secrets && shown.contains(SECRET)), "{shown}");
        }
    }

    #[test]
    fn a_template_is_kept_as_it_was_sent_and_its_secrets_are_not_shown(body in body(TEMPLATE_FIELDS, Verb::Create)) {
        let members = read(TEMPLATE_FIELDS, &body, Verb::Create)?;
        let Ok(template) = new_template(members.clone(), BIRTH) else {
            let name = body["name"].as_str().unwrap_or_default();
            prop_assert!(name.trim().is_empty(), "{body}");
            return Ok(());
        };
        let row = serde_json::to_string(&template).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Template>(&row).unwrap(), &template);
        prop_assert_eq!(&changed_template(&template, members).unwrap(), &template);
        let view = views::template(&template);
        prop_assert!(!view.to_string().contains(SECRET) || body["name"] == SECRET);
        // A client can send back what it has read, and nothing changes.
        let sent: Map<String, Value> = view.as_object().unwrap().iter()
            .filter(|(name, _)| TEMPLATE_FIELDS.iter().any(|field| field.name == *name && is_settable(field, Verb::Update)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let sent = read(TEMPLATE_FIELDS, &Value::Object(sent), Verb::Update)?;
        prop_assert_eq!(&changed_template(&template, sent).unwrap(), &template);
    }

    #[test]
    fn an_endpoint_is_kept_as_it_was_sent(body in body(ENDPOINT_FIELDS, Verb::Create)) {
        let mut members = read(ENDPOINT_FIELDS, &body, Verb::Create)?;
        members.remove("template");
        members.remove("templateId");
        let template = template();
        let Ok(endpoint) = new_endpoint(members.clone(), &template, BIRTH) else {
            let (min, max) = (body["workersMin"].as_u64().unwrap_or(0), body["workersMax"].as_u64().unwrap_or(3));
            let nameless = body["name"].as_str().is_some_and(|name| name.trim().is_empty());
            let is_balancing = body["type"] == "LB";
            let is_started_here = matches!(body["provider"].as_str(), None | Some("process" | "docker"));
            let misfits = if is_balancing { !is_started_here } else { body["lb"].is_object() };
            prop_assert!(min > max || nameless || misfits, "{body}");
            return Ok(());
        };
        let row = serde_json::to_string(&endpoint).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Endpoint>(&row).unwrap(), &endpoint);
        prop_assert_eq!(&changed_endpoint(&endpoint, members, &template).unwrap(), &endpoint);
        let extras = Extras { template: true, workers: None };
        prop_assert!(!views::endpoint(&endpoint, Some(&template), extras).to_json().contains(SECRET) || body["name"] == SECRET);
    }

    #[test]
    fn spoiled_bodies_are_refused_or_make_a_record(
        body in mutated(body(ENDPOINT_FIELDS, Verb::Update).prop_map(|body| body.to_string()), JSON_TOKENS),
        template_body in mutated(body(TEMPLATE_FIELDS, Verb::Create).prop_map(|body| body.to_string()), JSON_TOKENS),
    ) {
        match read_members(ENDPOINT_FIELDS, &body, Verb::Update) {
            Ok(members) => drop(changed_endpoint(&endpoint(), members, &template())),
            Err(failure) => prop_assert_eq!(failure.status().as_u16(), 400),
        }
        match read_members(TEMPLATE_FIELDS, &template_body, Verb::Create) {
            Ok(members) => drop(new_template(members, BIRTH)),
            Err(failure) => prop_assert_eq!(failure.status().as_u16(), 400),
        }
    }
}
