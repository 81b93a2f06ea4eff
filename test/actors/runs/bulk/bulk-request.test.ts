/** Bulk requests with an idempotency key: a repeat gets the runs of the first request. */
import t from 'tap'
import { defineActor } from '../../../../actors/actor.ts'
import { bulkRequestActor } from '../../../../actors/runs/bulk-request.ts'
import { given } from '../../../support/given.ts'

const actor = defineActor(bulkRequestActor)
const page = { began: 5, run_ids: ['run_1', 'run_2'], after: [3, 'run_2'] }

t.test('a request stores its runs and gets them as the reply', async (t) => {
  const selected = given(actor).when('bulk_request.select', page)
  t.strictSame(selected.events, [{ type: 'bulk_request.selected', ...page }])
  t.strictSame(selected.reply, page)
})
t.test('the reply to a repeat is computed from the stored runs', async (t) => {
  const last = { began: 5, run_ids: [] }
  for (const selection of [page, last]) {
    const { state } = given(actor).when('bulk_request.select', selection)
    t.strictSame(actor.replayReply?.(state as never), selection)
  }
})
t.test('an actor that has stored its runs is read from the journal', async (t) => {
  t.notOk(actor.final?.(actor.initial() as never))
  const { state } = given(actor).when('bulk_request.select', page)
  t.ok(actor.final?.(state as never))
  t.ok(actor.ended?.(state as never))
})
