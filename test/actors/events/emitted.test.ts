/**
 * The catalog marks an event type as ready if and only if this build publishes events of that type.
 */

import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { defineActor, type Effect } from '../../../actors/actor.ts'
import { run } from '../../../actors/runs/run.ts'
import { tableActor } from '../../../actors/tables/table.ts'
import { eventCatalog } from '../../../protocol/events/catalog.ts'
import type { Publication } from '../../../protocol/events/sources.ts'
import { emittedTypes } from '../../../protocol/events/types.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { ready } from '../artifacts/story.ts'
import { answer, asked } from '../interactions/story.ts'
import { Yard } from '../loops/yard.ts'
import { started } from '../runs/story.ts'
import { begun } from '../sessions/story.ts'

const publicationsOf = (effects: readonly Effect[] = []): Publication[] =>
  effects.flatMap((effect) =>
    'tell' in effect && effect.tell.name === 'source.publish'
      ? [effect.tell.input as Publication]
      : [],
  )
const publishedBy = (effects?: readonly Effect[]): string[] =>
  publicationsOf(effects).map(({ event_type }) => event_type)

/** The event types that runs publish. */
const ofRuns = Object.entries(run.react ?? {}).flatMap(([type, react]) => {
  const event = { type, payload: {}, private: { engine: {}, store: { id: 's', name: 'go' } } }
  return publishedBy(
    (react as (event: RunEvent, self: object) => readonly Effect[])(event as never, {
      kind: 'run',
      id: 'run_1',
      project: 'prj_1',
    }),
  )
})

const effectsOf = (yard: Yard): readonly Effect[] =>
  yard.events.flatMap(
    (event) =>
      yard.actor.react?.[event.type as 'loop.auto_paused']?.(
        event as never,
        { kind: 'loop', id: yard.id, project: 'prj_1' } as never,
      ) ?? [],
  )
/** A loop that is paused because a run has failed. */
function failing(): readonly Effect[] {
  const yard = new Yard()
  yard.create({ limits: { pause_after_consecutive_failures: 1 } })
  yard.start()
  yard.end(yard.in('running')[0] ?? '', 'failed')
  return effectsOf(yard)
}
/** A loop that is paused because its trigger would start too many runs. */
function triggered(): readonly Effect[] {
  const yard = new Yard()
  yard.create({ triggers: [{ kind: 'event', key: 'e', config: { event_type: 'run.*' } }] })
  yard.send('loop.stop', {
    trigger_ids: [yard.state.trigger_ids['e'] ?? ''],
    reason: 'Too many.',
    source: {
      id: 'sevt_1',
      event_type: 'run.completed',
      source_kind: 'loop_run',
      source_id: 'run_1',
      event: {},
      meta: { run_id: 'run_1' },
      depth: 1,
      occurred_at: '',
    },
  })
  return effectsOf(yard)
}
/** A run without a loop that exceeds its budget. */
const overspent = (): readonly Effect[] =>
  started([{ id: 'a', kind: 'agent', config: { agent_id: 'helper', instructions: 'Say hi' } }], {
    limits: { credit_budget: 2 },
  }).when('usage.record', {
    usage_id: 'job_9',
    category: 'llm.tokens',
    quantity: 10,
    credit_cost_milli: 2000,
    step_key: 'a',
  }).effects

const ofInteractions = [asked(), answer(asked(), 'ada')].flatMap(({ effects }) =>
  publishedBy(effects),
)
const ofSessions = publishedBy(begun('hi').last?.effects)
const ofArtifacts = publishedBy(ready().effects)
function ofTables(): string[] {
  const row = {
    id: 'row_1',
    identity: 'a',
    data: { name: 'a' },
    version: 1,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  }
  const more = { table_name: 'orders', change: 1, row, changed: [], previous: {} }
  const self = { kind: 'table', id: 'tbl_1', project: 'prj_1' } as const
  const { react } = defineActor(tableActor({ brand: 'Service' }))
  return (['table.row_inserted', 'table.row_updated', 'table.row_deleted'] as const).flatMap(
    (type) => publishedBy(react?.[type]?.({ type, ...more } as never, self)),
  )
}

/**
 * The event types that are not published by actors. Each key is the file that publishes the type.
 */
const atTheEdge: Readonly<Record<string, string>> = {
  'gateway/commands/http-trigger.ts': 'http_trigger.received',
  'nodes/mail/listener.ts': 'email.received',
}
const source = (file: string): string => readFileSync(file, 'utf8')

t.test('each ready event type is published by an actor or a named file', async (t) => {
  const actors = [
    ...ofRuns,
    ...publishedBy(failing()),
    ...ofInteractions,
    ...ofSessions,
    ...ofArtifacts,
    ...ofTables(),
  ].filter((type) => !type.startsWith('signal.'))
  for (const [file, type] of Object.entries(atTheEdge))
    t.ok(source(file).includes(`event_type: '${type}'`), file)
  t.strictSame(
    [...new Set([...actors, ...Object.values(atTheEdge)])].sort(),
    [...emittedTypes].sort(),
  )
  const ready = eventCatalog(true).items.flatMap(({ readiness, event_types }) =>
    readiness === 'ready' ? event_types.map(({ name }) => name) : [],
  )
  t.strictSame(ready.sort(), [...emittedTypes].sort())
})

t.test('unpublished event types are not ready and have a reason', async (t) => {
  const waiting = eventCatalog(true).items.filter(({ readiness }) => readiness !== 'ready')
  t.match(
    waiting.filter(({ readiness_reason }) => readiness_reason === undefined),
    [],
  )
  for (const { event_types } of waiting)
    for (const { name } of event_types) t.notOk(emittedTypes.has(name), name)
})

t.test('pauses and exceeded budgets have the fields of the catalog', async (t) => {
  const described = eventCatalog(true).items.flatMap(({ event_types }) => event_types)
  const schemaOf = (event_type: string) => {
    const found = described.find(({ name }) => name === event_type)
    type Schema = { readonly properties: object; readonly required?: readonly string[] }
    return { event: found?.event_schema as Schema, meta: found?.meta_schema as Schema }
  }
  for (const [effects, event_type] of [
    [failing(), 'loop.auto_paused'],
    [triggered(), 'loop.auto_paused'],
    [overspent(), 'run.budget_exceeded'],
  ] as const) {
    const said = publicationsOf(effects).find((one) => one.event_type === event_type)
    t.ok(said, event_type)
    for (const part of ['event', 'meta'] as const) {
      const { properties, required = [] } = schemaOf(event_type)[part]
      const names = Object.keys(said?.[part] ?? {})
      t.strictSame(
        names.filter((name) => !Object.hasOwn(properties, name)),
        [],
        `unknown fields of ${part} of ${event_type}`,
      )
      t.strictSame(
        required.filter((name) => !names.includes(name)),
        [],
        `missing fields of ${part} of ${event_type}`,
      )
    }
  }
})

t.test('each producer uses the type of published events', async (t) => {
  const producers = ['actors', 'gateway', 'nodes']
    .flatMap((room) =>
      readdirSync(room, { recursive: true, encoding: 'utf8' }).map((file) => `${room}/${file}`),
    )
    .filter((file) => file.endsWith('.ts') && !file.startsWith('actors/events/'))
    .filter((file) => source(file).includes("'source.publish'"))
  t.ok(producers.length >= 6)
  for (const file of producers) t.ok(source(file).includes('ServicePublication'), file)
})
