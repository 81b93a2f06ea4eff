/**
 * Deduplication keys of published events. For each key, a query returns the latest event in the
 * queried project, unless the event is too old.
 */
import t from 'tap'
import { View } from '../../../views/view.ts'
import { ask, Journal, T0 } from '../support/journal.ts'

const said = (n: number, dedup_key: string | undefined, at: number) => ({
  type: 'source.published',
  id: `sevt_${n}`,
  event_type: 'a.b',
  source_kind: 'custom',
  source_id: 's',
  event: {},
  meta: {},
  depth: 0,
  occurred_at: new Date(T0 + at * 1000).toISOString(),
  ...(dedup_key !== undefined && { dedup_key }),
})
t.test('a view stores the keys of published events', async (t) => {
  const journal = new Journal()
  const commit = (project: string, at: number, ...events: ReturnType<typeof said>[]) =>
    journal.commit(0, { kind: 'events', project, id: project, at, events })
  commit('prj_a', 0, said(1, 'k', 0), said(2, '__proto__', 0), said(3, undefined, 0))
  commit('prj_b', 1, said(4, 'k', 1))
  commit('prj_a', 5, said(5, 'k', 5))
  const view = View.open(':memory:')
  view.apply(journal.messages)
  const ids = (since: number, project = 'prj_a') =>
    ask<{ ids: unknown[] }>(
      view,
      'published_keys',
      { keys: ['k', '__proto__', 'none'], since: T0 + since * 1000 },
      project,
    ).ids
  t.strictSame(ids(-1), ['sevt_5', 'sevt_2', null])
  t.strictSame(ids(4), ['sevt_5', null, null])
  t.strictSame(ids(5), [null, null, null])
  t.strictSame(ids(-1, 'prj_b'), ['sevt_4', null, null])
})
