/**
 * A `for_each` step over many items. Invariants: every decision has a bounded size, and the cost of
 * an item does not grow with the number of items.
 */
import t from 'tap'
import { type Cause, type Decided, defineActor, evolve } from '../../../actors/actor.ts'
import { run } from '../../../actors/runs/run.ts'
import { progressesOf, type RunState } from '../../../actors/runs/state.ts'
import { prefixes } from '../../../protocol/ids.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'

const ITEMS = 10_000
const actor = defineActor(run)

/**
 * Starts a run with one action per item. Returns functions that end its jobs and read its state.
 */
function begin(items: number, width: number) {
  let state: RunState | null = null
  let minted = 0
  let largest = 0
  let total = 0
  const jobs: string[] = []
  let next = 0
  const decide = (name: string, input: unknown, at = 0): void => {
    const cause: Cause = {
      id: 'c',
      at,
      self: { project: 'p', kind: 'run', id: 'run_1' },
      shard: 0,
      principal: { type: 'user', id: 'u' },
      mint: (prefix) => `${prefixes[prefix]}_${++minted}`,
      secret: () => 's',
    }
    const decided = actor.decide[name]?.(state as never, input as never, cause) as Decided<
      RunEvent,
      unknown
    >
    largest = Math.max(largest, decided.events.length + (decided.tells?.length ?? 0))
    total += decided.events.length
    state = decided.next as RunState
    for (const tell of decided.tells ?? [])
      if (tell.name === 'queue.enqueue') jobs.push((tell.input as { job: { id: string } }).job.id)
  }
  const settle = (): void => {
    for (let due = run.deadline?.(state); due !== undefined; due = run.deadline?.(state))
      decide('wake', {}, due)
  }
  decide('run.start', {
    spec: {
      limits: { max_steps: 100_000 },
      steps: [
        {
          id: 'all',
          kind: 'for_each',
          config: {
            items: 'input.list',
            max_concurrency: width,
            steps: [
              { kind: 'action', config: { action_name: 'x', parameters: { n: '${{ item }}' } } },
            ],
          },
        },
      ],
    },
    input: { list: Array.from({ length: items }, (_, i) => i) },
  })
  settle()
  return {
    end: (count: number): void => {
      for (let i = 0; i < count; i++) {
        decide('job.settled', {
          job_id: jobs[next++],
          outcome: 'completed',
          attempt: 1,
          result: { n: i },
        })
        settle()
      }
    },
    state: () => state as unknown as RunState,
    restore: (from: RunState): void => {
      state = from
    },
    seen: () => ({ largest, total }),
  }
}

t.test('a step over 10,000 items takes bounded decisions', async (t) => {
  const story = begin(ITEMS, 100)
  t.equal(story.state().branches?.length, 100, 'as many under way as may be')
  story.end(100)
  const measure = (count: number): number => {
    const from = process.cpuUsage().user
    story.end(count)
    return process.cpuUsage().user - from
  }
  const first = measure(1900)
  story.end(6000)
  const last = measure(1900)
  t.ok(
    last < first * 4 + 100_000,
    `the items 8,000 to 9,900 take ${last} µs, those from 100 to 2,000 took ${first}`,
  )
  story.end(100)
  const { record, steps, branches } = story.state()
  t.match(
    [record.status, steps['all']?.result, branches],
    ['completed', { completed: ITEMS }, undefined],
  )
  t.ok(
    story.seen().largest <= 320,
    `the largest decision has ${story.seen().largest} events and tells`,
  )
  t.ok(story.seen().total < 12 * ITEMS, `${story.seen().total} events`)
  t.equal(progressesOf(story.state()).length, 1)
})

t.test('cancelling a hundred branches is one bounded decision', async (t) => {
  const story = begin(1000, 100)
  const cause: Cause = {
    id: 'c',
    at: 1,
    self: { project: 'p', kind: 'run', id: 'run_1' },
    shard: 0,
    principal: { type: 'user', id: 'u' },
    mint: (prefix) => `${prefixes[prefix]}_x`,
    secret: () => 's',
  }
  const decided = actor.decide['run.cancel']?.(
    story.state() as never,
    {} as never,
    cause,
  ) as Decided<RunEvent, unknown>
  t.strictSame(
    decided.tells?.map(({ name, input }) => [
      name,
      (input as { job_ids: string[] }).job_ids.length,
    ]),
    [['queue.cancel', 100]],
  )
  let state: unknown = story.state()
  for (const event of decided.events) state = evolve(actor, state, event, 1)
  t.match((state as RunState).record, { status: 'suspended', cancel_requested: true })
})

t.test('the results of items are restored from a snapshot of the first format', async (t) => {
  const story = begin(300, 10)
  story.end(150)
  const { yields = [], ...rest } = story.state()
  const before = Object.fromEntries(
    yields.map((chunk, at) => [
      String(at),
      Object.fromEntries(
        chunk.flatMap((what, place) => (what ? [[String(at * 128 + place), what]] : [])),
      ),
    ]),
  )
  story.restore({ ...rest, yields: before as never })
  story.end(150)
  t.match(story.state().steps['all']?.result, {
    completed: 300,
    results: Array.from({ length: 300 }, (_, n) => ({ 0: { n: n % 150 } })),
  })
})
