//! The operations and schemas that every resource of the management API has, under names made from the resource's own.

/// The six operations on a resource: list, create, get, update, update by `POST` and delete. The first name is that of
/// one resource, the second that of several. `$all` is the path of the list, `$one` that of a resource.
macro_rules! operations {
    (
        $name:literal, $several:literal, $all:expr, $one:expr,
        [$list:expr, $create:expr, $get:expr, $update:expr, $delete:expr $(,)?] $(,)?
    ) => {{
        use $crate::openapi::Operation;
        let update =
            |operation: Operation| operation.takes(concat!($name, "UpdateInput")).gives($name).tagged();
        [
            Operation::get(concat!("List", $several), $all, $list).lists($name),
            Operation::post(concat!("Create", $name), $all, $create)
                .takes(concat!($name, "CreateInput"))
                .gives($name)
                .tagged(),
            Operation::get(concat!("Get", $name), $one, $get).gives($name).tagged(),
            update(Operation::patch(concat!("Update", $name), $one, $update))
                .summary("changes the fields that are sent"),
            update(Operation::post(concat!("Update", $name, "ByPost"), format!("{}/update", $one), $update))
                .summary("the same as PATCH"),
            Operation::delete(concat!("Delete", $name), $one, $delete).tagged(),
        ]
    }};
}
pub(super) use operations;

/// The schemas of a resource as clients read it, create it (with the `$required` fields) and update it, each with an
/// example.
macro_rules! schemas {
    (
        $name:literal, $fields:expr, $required:expr,
        { read: $read:expr, create: $create:expr, update: $update:expr $(,)? } $(,)?
    ) => {{
        use $crate::management::fields::Verb;
        use $crate::management::schemas;
        use $crate::openapi::schema::with_example;
        vec![
            ($name, with_example(schemas::read($fields), $read)),
            (
                concat!($name, "CreateInput"),
                with_example(schemas::sent($fields, Verb::Create, $required), $create),
            ),
            (concat!($name, "UpdateInput"), with_example(schemas::sent($fields, Verb::Update, &[]), $update)),
        ]
    }};
}
pub(super) use schemas;
