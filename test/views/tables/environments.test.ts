/**
 * The list of environments: its content and its filters. Invariant: after any history of an
 * environment, its record in the list equals that of its actor.
 */
import fc from 'fast-check'
import t from 'tap'
import type { EnvironmentState } from '../../../actors/environments/state.ts'
import type { Environment } from '../../../protocol/environments/schema.ts'
import { View } from '../../../views/view.ts'
import { created, ID, PLACE } from '../../actors/environments/support.ts'
import type { Outcome, Scene } from '../../support/given.ts'
import { START } from '../../support/given.ts'
import { ask, Journal, T0 } from '../support/journal.ts'

const self = { project: 'prj_1', kind: 'environment' as const, id: ID }
const wire = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
/** Removes the fields that the actor computes and the view does not store. */
const stored = ({ worker_state: _, jobs_in_progress: _1, ...record }: Environment) => record

class World {
  readonly view = View.open(':memory:', { now: () => this.at })
  readonly journal = new Journal()
  at = START
  environment: Scene<EnvironmentState>
  constructor() {
    const first = created()
    this.environment = first
    this.commit(first)
  }
  commit({ events }: Pick<Outcome<EnvironmentState>, 'events'>): void {
    if (events.length === 0) return
    const draft = { ...self, events: wire(events), at: (this.at - T0) / 1000 }
    this.view.apply([this.journal.commit(0, draft)])
  }
  send(name: string, input: object): void {
    const next = this.environment.when(name, input, { at: this.at, self })
    this.environment = next
    this.commit(next)
  }
  get record(): Environment {
    return this.environment.ask('get', {}) as Environment
  }
  list(input: Record<string, unknown> = {}): Environment[] {
    const { items } = ask(this.view, 'environment.list', input, 'prj_1') as { items: Environment[] }
    return items
  }
  get operation() {
    return this.environment.state?.operation?.number ?? 0
  }
}

const sorted = (record: object) => Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))
const holder = { kind: 'agent', id: 'agt_1' }
const moves: Readonly<Record<string, (world: World) => void>> = {
  claim: (w) =>
    w.send('environment.claim', {
      operation: w.operation,
      host: 'h1',
      place: PLACE,
      isolation: 'x',
    }),
  done: (w) =>
    w.send('environment.report', { operation: w.operation, host: 'h1', outcome: 'done' }),
  failed: (w) =>
    w.send('environment.report', {
      operation: w.operation,
      host: 'h1',
      outcome: 'failed',
      error: 'full',
    }),
  use: (w) => w.send('environment.use', { job_id: 'job_1', queue: '0.default', holder }),
  end: (w) => w.send('environment.done', { job_id: 'job_1' }),
  lease: (w) => w.send('environment.acquire', { holder, ttl_seconds: 60 }),
  release: (w) => w.send('environment.release', { lease_id: w.record.lease?.id }),
  tag: (w) => w.send('environment.update', { tags: { at: String(w.at) } }),
  untag: (w) => w.send('environment.update', { tags: {}, owned_by: null }),
  start: (w) => w.send('environment.start_worker', {}),
  delete: (w) => w.send('environment.delete', {}),
  wait: (w) => {
    w.at += 45_000
    w.send('wake', {})
  },
}

t.test('after any history, the list has the record of the actor', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...Object.keys(moves)), { minLength: 5, maxLength: 40 }),
      (names) => {
        const world = new World()
        for (const name of names) {
          moves[name]?.(world)
          const [listed, ...more] = world.list({ include_destroyed: true })
          if (!listed || more.length > 0) throw new Error(`${more.length} more environments`)
          const [have, want] = [stored(listed), stored(world.record)]
          if (JSON.stringify(sorted(have)) !== JSON.stringify(sorted(want)))
            throw new Error(
              `after ${name}: ${JSON.stringify(have)} instead of ${JSON.stringify(want)}`,
            )
        }
      },
    ),
    { numRuns: 100 },
  )
})

t.test('filters', async (t) => {
  const world = new World()
  const ids = (input: Record<string, unknown>) => world.list(input).map(({ id }) => id)
  t.strictSame(ids({}), [ID])
  t.strictSame(ids({ status: 'provisioning' }), [ID])
  t.strictSame(ids({ status: 'ready' }), [])
  t.strictSame(ids({ run_id: 'run_1' }), [])
  t.strictSame(ask(world.view, 'environment_ids', { after: '', limit: 5 }, 'prj_1'), {
    items: [ID],
  })
  t.strictSame(ask(world.view, 'environment_ids', { after: ID, limit: 5 }, 'prj_1'), { items: [] })
  world.send('environment.delete', {})
  const { updated_at } = world.record
  t.strictSame(ids({}), [])
  t.strictSame(ids({ include_destroyed: true }), [ID])
  t.strictSame(ids({ status: 'destroyed' }), [ID])
  t.strictSame(ids({ status: 'destroyed', destroyed_since: updated_at }), [ID])
  t.strictSame(ids({ status: 'destroyed', destroyed_since: '2999-01-01T00:00:00.000Z' }), [])
  t.strictSame(ask(world.view, 'environment_ids', { after: '', limit: 5 }, 'prj_1'), { items: [] })
})
