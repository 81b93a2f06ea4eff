/**
 * Properties of a view that hold for every journal, even if the journal is split, is repeated, or
 * grows during queries.
 */
import fc from 'fast-check'
import t from 'tap'
import type { InteractionEvent } from '../../protocol/interactions/events.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import { View } from '../../views/view.ts'
import {
  type Answer,
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
  registered,
  run,
  started,
  stepBorn,
  T0,
  type Written,
  worker,
} from './support/journal.ts'

const projects = ['prj_a', 'prj_b'] as const
/**
 * A random change to one of nine runs, or to a job, interaction, worker or workflow that belongs to
 * one of them. `together`: the change waits for the next change in its shard, and the two are
 * committed together.
 */
const happening = fc.record({ what: fc.nat(12), who: fc.nat(8), together: fc.boolean() })
type Happening = { readonly what: number; readonly who: number; readonly together: boolean }

const asked = (id: string, who: number, seconds: number): Interaction => ({
  id,
  kind: 'request_approval',
  status: 'pending',
  title: `Question ${who}`,
  target_user_ids: [`user_${who % 3}`, 'user_9', 'user_9'],
  resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [`user_${who % 2}`] } },
  consumer: { kind: 'none' },
  run_id: `run_${who}`,
  responses: [],
  lifecycle: [],
  created_at: at(seconds),
  updated_at: at(seconds),
})
const question = (id: string, event: InteractionEvent, more: Partial<Draft>): Draft => ({
  kind: 'interaction',
  project: 'prj_a',
  id,
  events: [event],
  ...more,
})
const source = { event: {}, meta: {}, depth: 0 }

/**
 * Returns a journal of two projects and three shards with these changes. The first change of each
 * run is replaced by the creation of the run, its job and its interaction.
 */
function journalOf(happenings: readonly Happening[]): Written[] {
  const journal = new Journal()
  const born = new Set<number>()
  const waiting = new Map<number, Draft[]>()
  happenings.forEach(({ what, who, together }, i) => {
    const [id, job, int, project, shard] = [
      `run_${who}`,
      `job_${who}`,
      `int_${who}`,
      projects[who % 2] ?? 'prj_a',
      who % 3,
    ]
    const more = { project, at: i }
    const fresh = !born.has(who)
    born.add(who)
    const draft: Draft[] = fresh
      ? [
          started(
            id,
            Math.floor(i / 4),
            {
              queue: `q${who % 2}`,
              external_id: `order-${who % 3}`,
              ...(who % 4 === 0 && { workflow_type: 'mail' }),
            },
            more,
          ),
          queue([queued(jobBorn(job, id, i, { queue: `q${who % 2}` }))], more),
          question(
            int,
            { type: 'interaction.created', id: int, interaction: asked(int, who, i), source },
            more,
          ),
        ]
      : ([
          [moved(id, 'running', { started_at: at(i) }, more)],
          [
            run(
              id,
              [event('step.started', { step: `s${i % 3}`, row: stepBorn(id, `s${i % 3}`, i % 3) })],
              more,
            ),
          ],
          [
            run(
              id,
              [
                event('step.suspended', { step: 's0', row: { status: 'suspended', job_id: job } }),
                event('run.suspended', { run: { status: 'suspended' } }),
              ],
              more,
            ),
          ],
          [queue([claimed(job, `wst_w${who % 2}`, `w${who % 2}`, i + 60)], more)],
          [
            queue([ended(job, 'completed')], more),
            run(
              id,
              [
                event('action.completed', {
                  step: 's0',
                  payload: { action: 'a', job_id: job, result: { i } },
                }),
              ],
              more,
            ),
          ],
          [
            run(
              id,
              [
                event('action.called', { step: 's1', payload: { action: 'a', parameters: { i } } }),
                event('signal.stored'),
              ],
              more,
            ),
          ],
          [moved(id, 'completed', { result: { i }, completed_at: at(i) }, more)],
          [
            registered(`w${who % 2}`, { queues: ['q0'] }, more),
            worker(
              `w${who % 2}`,
              [{ type: 'worker.draining', instance: 'w', at: T0 } as never],
              more,
            ),
          ],
          [
            {
              kind: 'project',
              project,
              id: project,
              at: i,
              events: [
                {
                  type: 'workflow.created',
                  id: `wfd_${who}`,
                  workflow: {
                    id: `wfd_${who}`,
                    handle: `h${who}`,
                    name: 'n',
                    published_as_tool: false,
                    latest_version: 1,
                    created_at: at(i),
                    updated_at: at(i),
                  },
                  spec: { steps: [] },
                } as never,
              ],
            } satisfies Draft,
          ],
          [moved(id, 'failed', { error_message: 'no' }, more)],
          [
            question(
              int,
              { type: 'interaction.submitted', id: int, set: { status: 'in_review' } },
              more,
            ),
          ],
          [
            question(
              int,
              {
                type: 'interaction.resolved',
                id: int,
                set: { status: 'completed' },
                outcome: { value: i },
                source,
              },
              more,
            ),
          ],
          [question(int, { type: 'interaction.deleted', id: int }, more)],
        ][what] ?? [])
    const held = [...(waiting.get(shard) ?? []), ...draft]
    waiting.delete(shard)
    if (together && i < happenings.length - 1) waiting.set(shard, held)
    else journal.commit(shard, ...held)
  })
  return journal.messages
}

/** Returns the answers of a view to queries about all records, as one text. */
function everything(view: View): string {
  const answers: unknown[] = [view.position()]
  for (const project of projects) {
    const on = (name: string, input: object = {}) =>
      answers.push(project, name, ask(view, name, { limit: 200, ...input }, project))
    for (const filter of [
      {},
      { queue: 'q1' },
      { external_id: 'order-1' },
      { status: ['running', 'failed'] },
      { workflow_type: 'mail' },
    ])
      on('run.list', filter)
    for (const name of ['workflow.list', 'worker.list', 'audit.list']) on(name)
    for (const filter of [
      {},
      { status: ['pending', 'completed'] },
      { target_user_id: 'user_1' },
      { target_user_id: 'user_9' },
      { inbox: true, caller: ['user_1'] },
      { run_id: 'run_2' },
    ])
      on('interaction.list', filter)
    on('feed', { after: 0 })
    for (let who = 0; who < 9; who++) {
      for (const name of [
        'run.get',
        'run.steps',
        'run.jobs',
        'run.action_log',
        'run.events',
        'workflow.get',
        'workflow.versions',
      ])
        on(name, { id: name.startsWith('run') ? `run_${who}` : `wfd_${who}` })
      on('timeline', { run_id: `run_${who}`, after: 0 })
      on('locate', { run_id: `run_${who}` })
      on('interaction.get', { id: `int_${who}` })
      on('leases', { session: `wst_w${who % 2}` })
    }
  }
  return JSON.stringify(answers)
}
const fresh = () => View.open(':memory:', { now: () => T0 })
const built = (messages: readonly Written[]): View => {
  const view = fresh()
  view.apply(messages)
  return view
}
const journals = fc.array(happening, { minLength: 1, maxLength: 60 }).map(journalOf)

t.test(
  'any split of the journal into batches, and any repetition of parts, gives the same answers',
  (t) => {
    void fc.assert(
      fc.property(
        journals,
        fc.array(fc.tuple(fc.nat(8), fc.nat(8)), { maxLength: 20 }),
        (messages, cuts) => {
          const view = fresh()
          let applied = 0
          for (const [back, size] of cuts) {
            const from = Math.max(0, applied - back)
            view.apply(messages.slice(from, applied + size))
            applied = Math.min(messages.length, applied + size)
          }
          view.apply(messages.slice(applied))
          const once = built(messages)
          const same = everything(view) === everything(once)
          view.reset()
          view.apply(messages)
          const rebuilt = everything(view) === everything(once)
          view.close()
          once.close()
          return same && rebuilt
        },
      ),
      { numRuns: 60 },
    )
    t.end()
  },
)

t.test('a missing message that has a successor in its shard is detected', (t) => {
  void fc.assert(
    fc.property(journals, fc.nat(), (messages, n) => {
      const missing = messages[n % messages.length]
      const followed = messages.some(({ data }) => data.prev === missing?.sequence)
      const view = fresh()
      let noticed = false
      try {
        view.apply(messages.filter((message) => message !== missing))
      } catch {
        noticed = true
      }
      view.close()
      return noticed === followed
    }),
    { numRuns: 60 },
  )
  t.end()
})

t.test('pages read while the journal grows neither repeat nor skip older records', (t) => {
  const lists = [
    { name: 'run.list', input: {} },
    { name: 'run.list', input: { queue: 'q0' } },
    { name: 'run.list', input: { external_id: 'order-1' } },
    { name: 'workflow.list', input: {} },
    { name: 'audit.list', input: {} },
  ]
  void fc.assert(
    fc.property(
      journals,
      fc.nat(),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(...lists),
      (messages, n, limit, { name, input }) => {
        const half = n % messages.length
        const view = built(messages.slice(0, half))
        const before = each(ask(view, name, { ...input, limit: 200 }), 'id')
        const seen: unknown[] = []
        let next = half
        for (let answer: Answer | undefined = ask(view, name, { ...input, limit }); answer; ) {
          seen.push(...each(answer, 'id'))
          view.apply(messages.slice(next, (next += 5)))
          answer = answer.position && ask(view, name, { ...input, limit, after: answer.position })
        }
        view.close()
        return new Set(seen).size === seen.length && before.every((id) => seen.includes(id))
      },
    ),
    { numRuns: 100 },
  )
  t.end()
})

t.test('no list contains a record of another project', (t) => {
  void fc.assert(
    fc.property(journals, (messages) => {
      const view = built(messages)
      const strangers = projects.every((project, mine) => {
        const text = (name: string, input: object = {}) =>
          JSON.stringify(ask(view, name, { limit: 200, ...input }, project))
        const listed =
          ['run.list', 'workflow.list'].map((name) => text(name)).join() +
          text('feed', { after: 0 })
        const foreign = [...listed.matchAll(/"(?:run|wfd)_(\d)"/g)].some(
          ([, who]) => Number(who) % 2 !== mine,
        )
        const opened = Array.from({ length: 9 }, (_, who) => who)
          .filter((who) => who % 2 !== mine)
          .some(
            (who) =>
              ['run.get', 'run.steps', 'run.jobs', 'run.action_log', 'run.events'].some(
                (name) => !text(name, { id: `run_${who}` }).includes('not_found'),
              ) || !text('workflow.get', { id: `wfd_${who}` }).includes('not_found'),
          )
        return !foreign && !opened
      })
      view.close()
      return strangers
    }),
    { numRuns: 40 },
  )
  t.end()
})
