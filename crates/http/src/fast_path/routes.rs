//! The list of the routes that every job passes, from which the fast path's table is made.

use crate::fast_route::FastRoute;
use crate::jobs::fast_routes::{RUN, RUNSYNC, STATUS};
use crate::workers::fast_routes::{DONE, PING, TAKE, TAKE_BATCH};

/// Every route that bypasses axum's router.
pub(crate) static ROUTES: [&FastRoute; 7] = [&RUN, &RUNSYNC, &STATUS, &TAKE, &TAKE_BATCH, &DONE, &PING];
