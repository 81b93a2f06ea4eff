/**
 * Compares the actor, with random listeners and events, with a model that tests every event against
 * every listener. Invariant: the actor finds the same matches whether its index was updated by each
 * command, or rebuilt from events or from a snapshot.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { defineActor, fold } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import type { SourcesState } from '../../../actors/events/state.ts'
import { fits } from '../../../protocol/events/matching.ts'
import { defaultTriggerLimits, type Publication } from '../../../protocol/events/sources.ts'
import { isPrivate } from '../../../protocol/events/types.ts'
import { ExpressionError } from '../../../protocol/rules/expressions/expression.ts'
import { given, type Scene, START } from '../../support/given.ts'

const actor = defineActor(eventsActor(defaultTriggerLimits))
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const exact = fc.constantFrom('a.b', 'a.b.c', 'a.x', 'run.completed', 'signal.a', 'schedule.tick')
const value = fc.constantFrom<unknown>(1, 2, '1', true, null, [1], { k: 1 })
const wanted = {
  event_type: fc.oneof(exact, fc.constantFrom('a.*', 'a.b.*', 'run.*', 'signal.*', 'schedule.*')),
  source_id: maybe(fc.constantFrom('s', 'orders')),
  condition: maybe(
    fc.constantFrom(
      'event.n == 1',
      'event.n == 1 && meta.m == 2',
      '1 == meta.m',
      'event.k.k == 1',
      'event.n > 1',
      'event.n',
      'meta.m == "1" || event.n == 2',
      '${{ event.n == true }}',
      'input.n == 1',
      '(',
    ),
  ),
}
const match = maybe(
  fc.oneof(
    fc.record({ n: value }),
    fc.record({ 'event.n': value }),
    fc.record({ m: value, n: value }),
    fc.record({ 'meta.m': fc.constantFrom<unknown>(1, [1, 2]) }),
  ),
)
const list = fc.array(fc.record(wanted), { maxLength: 4 })
const event = fc.record({
  event_type: exact,
  source_kind: fc.constantFrom('custom', 'table_row'),
  source_id: fc.constantFrom('s', 't'),
  event: fc.record({ n: value, k: value }, { requiredKeys: [] }),
  meta: fc.record(
    { m: fc.constantFrom(1, 2, '1'), table_name: fc.constant('orders') },
    { requiredKeys: [] },
  ),
  depth: fc.constantFrom(0, 0, 8, 9),
  dedup_key: maybe(fc.constantFrom('x', 'y', 'z')),
})
const id = fc.integer({ min: 1, max: 4 })
type Command = {
  readonly name: string
  readonly input: Record<string, unknown>
  readonly later?: number
}
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(event, fc.constantFrom(0, 1000, 50_000_000))
      .map(([input, later]) => ({ name: 'source.publish', input, later })),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(id, fc.nat(6), list).map(([loop, version, triggers]) => ({
      name: 'triggers.set',
      input: {
        loop_id: `loop_${loop}`,
        version,
        triggers: triggers.map((one, i) => ({ trigger_id: `trg_${loop}_${i}`, ...one })),
      },
    })),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(id, id, fc.record({ ...wanted, match })).map(([run, wait, rest]) => ({
      name: 'wait.watch',
      input: { run_id: `run_${run}`, wait: { wait_id: `wait_${run}_${wait}`, ...rest } },
    })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(id, id).map(([run, wait]) => ({
      name: 'wait.unwatch',
      input: { run_id: `run_${run}`, wait_id: `wait_${run}_${wait}` },
    })),
  },
)

type Wanted = Parameters<typeof fits>[0]
interface Model {
  readonly loops: Map<string, { version: number; triggers: (Wanted & { trigger_id: string })[] }>
  readonly waits: Map<string, { run_id: string; wait: Wanted }>
  readonly keys: Map<string, number>
}
function isFor(one: Wanted, event: Publication): boolean {
  try {
    return !isPrivate(event.event_type) && fits(one, event)
  } catch (error) {
    if (error instanceof ExpressionError) return false
    throw error
  }
}
/**
 * Publishes an event in the model. Returns the receivers, or undefined if the event is not stored.
 */
function play(
  { loops, waits, keys }: Model,
  event: Publication,
  at: number,
): readonly string[] | undefined {
  const { dedup_key: key, event_type } = event
  // The actor remembers a key for at least a day; the model, for exactly a day.
  if (key !== undefined && (keys.get(key) ?? Number.NEGATIVE_INFINITY) + 86_400_000 > at)
    return undefined
  const listens = [
    ...[...loops.values()].flatMap(({ triggers }) => triggers),
    ...[...waits.values()].map(({ wait }) => wait),
  ]
  if (
    event_type === 'run.completed' &&
    !listens.some((one) => one.event_type === event_type || one.event_type === 'run.*')
  )
    return undefined
  if (key !== undefined) keys.set(key, at)
  return [
    ...[...loops].flatMap(([loop, { triggers }]) =>
      triggers.filter((one) => isFor(one, event)).map(({ trigger_id }) => `${loop} ${trigger_id}`),
    ),
    ...[...waits]
      .filter(([, { wait }]) => isFor(wait, event))
      .map(([wait_id, { run_id }]) => `${run_id} ${wait_id}`),
  ].sort()
}
function listen({ loops, waits }: Model, { name, input }: Command): void {
  if (name === 'triggers.set') {
    const { loop_id, version, triggers } = input as {
      loop_id: string
      version: number
      triggers: (Wanted & { trigger_id: string })[]
    }
    if ((loops.get(loop_id)?.version ?? -1) < version) loops.set(loop_id, { version, triggers })
  } else if (name === 'wait.watch') {
    const { run_id, wait } = input as { run_id: string; wait: Wanted & { wait_id: string } }
    waits.set(wait.wait_id, { run_id, wait })
  } else waits.delete(String(input['wait_id']))
}
/**
 * Converts events to JSON, without their ids and with matched triggers and waits in a fixed order.
 */
const plain = (events: readonly object[]): string =>
  JSON.stringify(
    events.map((one) => ({ ...one, id: 0 })),
    (_, value: unknown) => {
      if (Array.isArray(value))
        return value.every((item) => typeof item === 'string') ? [...value].sort() : value
      return typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value
    },
  )
const wire = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

t.test('every event reaches exactly the listeners that match it', async (t) => {
  let matched = 0
  void fc.assert(
    fc.property(fc.array(command, { minLength: 12, maxLength: 60 }), (commands) => {
      const model: Model = { loops: new Map(), waits: new Map(), keys: new Map() }
      let scene: Scene<SourcesState> = given<SourcesState>(actor)
      // This state keeps its index across commands, as in a shard.
      const living = wire(scene.state)
      for (const { name, input: raw, later = 0 } of wire(commands)) {
        const at = scene.at + later
        const after = scene.when(name, raw, { at })
        const decide = actor.decide[name] as unknown as (
          state: unknown,
          input: unknown,
          cause: unknown,
        ) => { events: { type: string }[] }
        const lives = decide(living, raw, { at, mint: () => 'sevt_x', principal: { id: 'p' } })
        if (plain(lives.events) !== plain(after.events))
          throw new Error(
            `the index that lives on says ${JSON.stringify(lives.events)}, a new one ${JSON.stringify(after.events)}`,
          )
        for (const one of after.events) actor.evolve[one.type]?.(living as never, one as never, at)
        if (name === 'source.publish') {
          const wanted = play(model, raw as unknown as Publication, at)
          const [stored] = after.events
          const known =
            (after.reply as { deduped?: true }).deduped && wanted === undefined ? undefined : stored
          const found =
            known &&
            [known['fires'] ?? {}, known['wakes'] ?? {}]
              .flatMap((lists) =>
                Object.entries(lists as Record<string, string[]>).flatMap(([owner, ids]) =>
                  ids.map((one) => `${owner} ${one}`),
                ),
              )
              .sort()
          // The actor may remember a key for longer than a day, and then deduplicates an event that
          // the model stores.
          if (wanted !== undefined && !stored && (after.reply as { deduped?: true }).deduped)
            model.keys.delete(String(raw['dedup_key']))
          else if (JSON.stringify(found) !== JSON.stringify(wanted))
            throw new Error(
              `${JSON.stringify(raw)} was for ${JSON.stringify(wanted)}, but found ${JSON.stringify(found)}`,
            )
          matched += found?.length ?? 0
        } else listen(model, { name, input: raw })
        scene = after
      }
      // The history is replayed with a single timestamp, so the keys may differ. Nothing else
      // depends on time.
      const folded = fold(actor, wire(scene.history), START) as SourcesState
      if (
        JSON.stringify([folded.loops, folded.waits, folded.faults]) !==
        JSON.stringify([scene.state.loops, scene.state.waits, scene.state.faults])
      )
        throw new Error('the state is not what the history says')
    }),
    { numRuns: 500 },
  )
  t.ok(matched > 200, `${matched} matches`)
})
