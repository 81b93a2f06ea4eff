/** The timeline and the action log of a run, and the feed of a project. */
import t from 'tap'
import { cursorOf } from '../../protocol/entry.ts'
import { View } from '../../views/view.ts'
import {
  ask,
  at,
  claimed,
  type Draft,
  each,
  ended,
  event,
  Journal,
  jobBorn,
  moved,
  queue,
  queued,
  run,
  started,
} from './support/journal.ts'

const open = () => {
  const journal = new Journal()
  const view = View.open(':memory:')
  return {
    view,
    commit: (...drafts: readonly Draft[]) => view.apply([journal.commit(0, ...drafts)]),
  }
}
const called = event('action.called', {
  step: 'mail',
  payload: {
    action: 'send_mail',
    step: 'mail',
    parameters: { to: 'a' },
    job_id: 'job_1',
    attempt: 1,
  },
})
const completed = event('action.completed', {
  step: 'mail',
  payload: {
    action: 'send_mail',
    step: 'mail',
    result: { ok: true },
    job_id: 'job_1',
    worker_instance_id: 'w1',
  },
})

/** Creates a view of a run that calls an action and completes, in four commits. */
const story = () => {
  const world = open()
  world.commit(started('run_1', 1), moved('run_1', 'running', {}, { at: 1 }))
  world.commit(
    run('run_1', [called, event('run.suspended', { run: { status: 'suspended' } })], { at: 2 }),
    queue([queued(jobBorn('job_1', 'run_1', 2))], { at: 2 }),
  )
  world.commit(queue([claimed('job_1', 's1', 'w1', 60)], { at: 3 }))
  world.commit(
    queue([ended('job_1', 'completed')], { at: 4 }),
    run(
      'run_1',
      [
        completed,
        event('wait.closed', { step: 'mail' }),
        event('run.completed', {
          payload: { status: 'completed', output: {} },
          run: { status: 'completed', result: {} },
        }),
      ],
      { at: 4 },
    ),
  )
  return world
}
interface Timeline {
  readonly items: readonly { readonly event_type: string; readonly sequence: number }[]
  readonly last: number
  readonly ended: boolean
  readonly oldest: number
  readonly exists: boolean
}
const timeline = (view: View, after: number, limit = 100, project = 'prj_a') =>
  ask<Timeline>(view, 'timeline', { run_id: 'run_1', after, limit }, project)

t.test('the timeline shows its events in the format of clients', (t) => {
  const { view } = story()
  const all = timeline(view, 0)
  t.strictSame(
    all.items.map(({ event_type, sequence }) => [event_type, sequence]),
    [
      ['run.started', cursorOf(1, 1)],
      ['action.called', cursorOf(2, 0)],
      ['run.suspended', cursorOf(2, 1)],
      ['action.completed', cursorOf(4, 1)],
      ['run.completed', cursorOf(4, 3)],
    ],
  )
  t.strictSame(all.items[1], {
    id: `run_1:evt:${cursorOf(2, 0)}`,
    run_id: 'run_1',
    sequence: cursorOf(2, 0),
    event_type: 'action.called',
    step_id: 'run_1:mail',
    step_key: 'mail',
    payload: called.payload,
    created_at: at(2),
  })
  t.end()
})

t.test(
  'a follower learns the position of the run, also from events that the timeline omits',
  (t) => {
    const { view, commit } = open()
    commit(started('run_1', 1))
    t.strictSame(timeline(view, 0), {
      items: [],
      last: cursorOf(1, 0),
      more: false,
      ended: false,
      oldest: 0,
      exists: true,
      current: cursorOf(1, 999),
    })
    commit(moved('run_1', 'running'), run('run_1', [event('signal.stored')]))
    t.match(timeline(view, 0), {
      items: [{ sequence: cursorOf(2, 0) }],
      last: cursorOf(2, 1),
      ended: false,
    })
    t.strictSame(timeline(view, cursorOf(2, 0)), {
      items: [],
      last: cursorOf(2, 1),
      more: false,
      ended: false,
      oldest: 0,
      exists: true,
      current: cursorOf(2, 999),
    })
    t.match(timeline(view, 0, 10, 'prj_b'), { items: [], exists: false })
    t.match(ask(view, 'timeline', { run_id: 'run_2', after: 0, limit: 1 }), {
      exists: false,
      last: 0,
    })
    t.end()
  },
)

t.test('the timeline has ended when the run is terminal and has no later events', (t) => {
  const { view, commit } = story()
  t.equal(timeline(view, 0).ended, true)
  t.equal(timeline(view, 0, 4).ended, false)
  t.equal(timeline(view, 0, 5).ended, true)
  t.equal(timeline(view, cursorOf(4, 3)).ended, true)
  commit(moved('run_1', 'queued'))
  t.match(timeline(view, cursorOf(4, 3)), { items: [{ event_type: 'run.resumed' }], ended: false })
  t.end()
})

t.test('the JSON form is a page by sequence', (t) => {
  const { view } = story()
  const page = (input: object) =>
    ask<{ items: { sequence: number }[]; next_sequence?: number; has_more?: boolean }>(
      view,
      'run.events',
      { id: 'run_1', ...input },
    )
  const first = page({ limit: 2 })
  t.match(first, { next_sequence: cursorOf(2, 0), has_more: true })
  const rest = page({ after_sequence: first.next_sequence ?? 0 })
  t.match(rest, { next_sequence: cursorOf(4, 3), has_more: false })
  t.equal(first.items.length + rest.items.length, 5)
  t.strictSame(page({ after_sequence: cursorOf(9, 0) }), { items: [], has_more: false })
  t.match(ask(view, 'run.events', { id: 'run_1' }, 'prj_b'), { refused: 'not_found' })
  t.match(ask(view, 'run.events_stream', { id: 'run_1', limit: 1 }), {
    items: [{ event_type: 'run.started' }],
  })
  t.end()
})

t.test('the action log lists the calls of a run, oldest first', (t) => {
  const { view, commit } = story()
  commit(
    run(
      'run_1',
      [
        event('action.failed', {
          step: 'mail',
          payload: {
            action: 'send_mail',
            error: 'no',
            error_type: 'boom',
            attempt: 2,
            max_attempts: 3,
          },
        }),
        event('action.retried', { step: 'mail', payload: { action: 'send_mail', attempt: 3 } }),
      ],
      { at: 5 },
    ),
  )
  const log = ask(view, 'run.action_log', { id: 'run_1' })
  t.strictSame(log.items, [
    {
      id: `run_1:act:${cursorOf(2, 0)}`,
      run_id: 'run_1',
      seq: cursorOf(2, 0),
      job_id: 'job_1',
      step_key: 'mail',
      action_name: 'send_mail',
      status: 'called',
      attempt: 1,
      parameters: { to: 'a' },
      created_at: at(2),
    },
    {
      id: `run_1:act:${cursorOf(4, 1)}`,
      run_id: 'run_1',
      seq: cursorOf(4, 1),
      job_id: 'job_1',
      step_key: 'mail',
      action_name: 'send_mail',
      status: 'completed',
      attempt: 1,
      result: { ok: true },
      worker_instance_id: 'w1',
      created_at: at(4),
    },
    {
      id: `run_1:act:${cursorOf(5, 0)}`,
      run_id: 'run_1',
      seq: cursorOf(5, 0),
      step_key: 'mail',
      action_name: 'send_mail',
      status: 'failed',
      attempt: 2,
      error_type: 'boom',
      error_message: 'no',
      created_at: at(5),
    },
    {
      id: `run_1:act:${cursorOf(5, 1)}`,
      run_id: 'run_1',
      seq: cursorOf(5, 1),
      step_key: 'mail',
      action_name: 'send_mail',
      status: 'retried',
      attempt: 3,
      created_at: at(5),
    },
  ])
  const first = ask(view, 'run.action_log', { id: 'run_1', limit: 3 })
  t.strictSame(first.position, [cursorOf(5, 0)])
  const rest = ask(view, 'run.action_log', { id: 'run_1', limit: 3, after: first.position ?? [] })
  t.strictSame([each(rest, 'status'), rest.position], [['retried'], undefined])
  t.match(ask(view, 'run.action_log', { id: 'run_1' }, 'prj_b'), { refused: 'not_found' })
  t.end()
})

t.test('texts of the feed may contain any character', (t) => {
  const { view, commit } = open()
  const strange = ['with space', '"quoted"', 'a\\b', 'line\nfeed\u0001', 'é 😀']
  for (const [i, text] of strange.entries())
    commit(
      started(`run_${i}`, 1, { definition_id: text }),
      queue([queued(jobBorn(`job_${i}`, `run_${i}`, 1, { step_key: text }))]),
    )
  const { items } = ask<{ items: { json: string }[] }>(view, 'feed', { after: 0, limit: 100 })
  const data = items.map(({ json }) => (JSON.parse(json) as { data: Record<string, unknown> }).data)
  t.strictSame(
    data.map(({ definition_id, step_key }) => definition_id ?? step_key),
    strange.flatMap((text) => [text, text]),
  )
  t.end()
})

t.test('the feed lists calls and status changes of runs and jobs, in journal order', (t) => {
  const { view, commit } = story()
  const feed = (after: number, limit = 100, project = 'prj_a') => {
    const { items, ...rest } = ask<{
      items: { seq: number; type: string; json: string }[]
      last: number
      oldest: number
    }>(view, 'feed', { after, limit }, project)
    return {
      items: items.map(({ seq, type, json }) => ({
        seq,
        type,
        ...(JSON.parse(json) as { data: object }),
      })),
      ...rest,
    }
  }
  const all = feed(0)
  const { items, appended } = ask<{
    items: { seq: number; type: string; json: string }[]
    appended: string
  }>(view, 'feed', { after: cursorOf(2, 1), limit: 2, appended: true })
  t.strictSame(items, [])
  t.equal(
    appended,
    ask<{ items: typeof items }>(view, 'feed', { after: cursorOf(2, 1), limit: 2 })
      .items.map(({ seq, type, json }) => `${seq} ${type} ${json}\n`)
      .join(''),
    'the same events as lines',
  )
  t.strictSame(
    all.items.map(({ type, seq, data }) => [type, seq, 'status' in data && data.status]),
    [
      ['run_updated', cursorOf(1, 0), 'queued'],
      ['run_updated', cursorOf(1, 1), 'running'],
      ['action_appended', cursorOf(2, 0), 'called'],
      ['run_updated', cursorOf(2, 1), 'suspended'],
      ['job_updated', cursorOf(2, 2), 'queued'],
      ['job_updated', cursorOf(3, 0), 'claimed'],
      ['job_updated', cursorOf(4, 0), 'completed'],
      ['action_appended', cursorOf(4, 1), 'completed'],
      ['run_updated', cursorOf(4, 3), 'completed'],
    ],
  )
  t.strictSame(all.items[5], {
    type: 'job_updated',
    run_id: 'run_1',
    seq: cursorOf(3, 0),
    timestamp: at(3),
    data: { job_id: 'job_1', status: 'claimed', step_key: 'mail', claim_attempt: 1 },
  })
  t.strictSame(all.items[2]?.data, ask(view, 'run.action_log', { id: 'run_1' }).items[0])
  t.equal(all.last, cursorOf(4, 999), 'the page covers everything up to the position')
  t.strictSame(
    feed(cursorOf(2, 1), 2).items.map(({ seq }) => seq),
    [cursorOf(2, 2), cursorOf(3, 0)],
  )
  t.equal(feed(cursorOf(2, 1), 2).last, cursorOf(3, 0), 'the last frame, when more follow')
  t.strictSame(
    feed(cursorOf(99, 0)),
    { items: [], last: cursorOf(4, 999), oldest: 0, more: false },
    'a cursor beyond the end',
  )
  t.strictSame(feed(0, 100, 'prj_b'), { items: [], last: cursorOf(4, 999), oldest: 0, more: false })
  commit(started('run_9', 9, { definition_id: 'wfd_1', definition_version: 2 }))
  t.strictSame(feed(all.last).items[0]?.data, { status: 'queued', definition_id: 'wfd_1' })
  t.end()
})

t.test('two frames of one event are always on the same page', (t) => {
  const { view, commit } = open()
  commit(started('run_1', 1))
  commit(run('run_1', [{ ...called, run: { status: 'suspended' } }]))
  commit(moved('run_1', 'running'))
  const feed = (after: number) =>
    ask<{ items: { type: string }[]; last: number; more: boolean }>(view, 'feed', {
      after,
      limit: 2,
    })
  t.match(
    [feed(0).items.map(({ type }) => type), feed(0).more],
    [['run_updated', 'action_appended', 'run_updated'], true],
  )
  t.match(
    [feed(feed(0).last).items.map(({ type }) => type), feed(feed(0).last).more],
    [['run_updated'], false],
  )
  t.end()
})

t.test('a page of the feed fits into one message and states whether more follows', (t) => {
  const { view, commit } = open()
  commit(started('run_1', 1))
  for (let i = 0; i < 8; i++)
    commit(
      run('run_1', [
        {
          ...called,
          payload: { ...(called.payload as object), parameters: { text: 'x'.repeat(300_000) } },
        },
      ]),
    )
  const feed = (after: number) =>
    ask<{ items: { seq: number; json: string }[]; last: number; more: boolean }>(view, 'feed', {
      after,
      limit: 100,
    })
  const pages = [feed(0)]
  for (let page = pages[0]; page?.more; pages.push(page)) page = feed(page.last)
  t.strictSame(
    pages.map(({ items }) => items.length),
    [5, 4],
    'a page is over with its first million characters',
  )
  t.strictSame(new Set(pages.flatMap(({ items }) => items.map(({ seq }) => seq))).size, 9)
  t.end()
})
