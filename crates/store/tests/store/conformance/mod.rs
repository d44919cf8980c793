//! What every store does.
//!
//! `store_conformance!(open)` makes a test of each case; `open` answers a fresh store and what must outlive it.

pub mod catalog;
pub mod commits;
pub mod jobs;
pub mod payloads;

macro_rules! store_conformance {
    ($open:expr) => {
        store_conformance! { $open;
            commits::a_commit_is_visible_to_the_next_read,
            commits::changes_apply_in_order,
            commits::a_stale_epoch_commits_nothing,
            commits::a_stale_batch_does_not_hinder_its_neighbours,
            commits::every_claim_raises_the_epoch,
            commits::shards_are_claimed_one_by_one,
            commits::a_released_shard_takes_no_commits,
            commits::a_stale_release_changes_nothing,
            commits::an_empty_batch_is_checked_too,
            commits::many_tasks_commit_concurrently,
            commits::buffered_commits_are_visible_too,
            jobs::every_field_survives,
            jobs::every_state_survives,
            jobs::a_row_is_replaced_whole,
            jobs::pages_cover_all_jobs_once,
            jobs::endpoints_do_not_mix,
            jobs::the_largest_keys_work,
            jobs::deleting_removes_all_that_belongs_to_a_job,
            jobs::the_last_attempts_survive,
            jobs::deleting_many_spares_those_between,
            jobs::deleting_what_is_not_there_is_fine,
            jobs::hooks_are_kept_per_endpoint,
            payloads::inputs_and_outcomes_survive,
            payloads::an_outcome_is_replaced_whole_and_cleared,
            payloads::five_megabytes_inline_survive,
            payloads::streams_and_chunks_survive,
            payloads::chunks_come_in_pages_of_bytes,
            payloads::dropped_chunks_leave_the_stream,
            payloads::a_deleted_stream_takes_its_chunks_along,
            catalog::an_empty_store_has_an_empty_catalog,
            catalog::records_survive_in_the_order_of_creation,
            catalog::a_deleting_endpoint_stays_until_it_is_deleted,
            catalog::endpoint_numbers_are_not_given_out_again,
            catalog::counters_survive,
            catalog::settings_are_replaced,
            catalog::small_records_keep_their_place_within_their_kind,
        }
    };
    ($open:expr; $($file:ident::$case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _keep) = $open;
                $crate::conformance::$file::$case(&store).await;
            }
        )*
    };
}
