//! Hand-written stories: healthy ones raise no alarm, and each broken promise raises one.

mod story;

mod keeping;

use self::story::Story;
