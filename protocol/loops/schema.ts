/**
 * Schemas of loops as clients write and read them. A loop has the authoring form of a workflow
 * (`../workflows/spec.ts`), with `event` in place of `input`. In addition, it has triggers,
 * repositories and a concurrency policy.
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject, Tags, Timestamp } from '../common.ts'
import { SavedWarnings } from '../workflows/saved-warnings.ts'
import { Spec } from '../workflows/spec.ts'

export const loopStatuses = ['draft', 'active', 'paused'] as const
const ConcurrencyPolicy = Type.Enum(['allow', 'queue', 'skip', 'replace'], {
  description:
    'Concurrency policy, which applies when the loop starts while another of its runs is active. ' +
    'allow (the default): both runs are active; queue: the new run waits; skip: no run is ' +
    'started; replace: the active run is cancelled',
})
/** The effect of a start while another run is active. */
export type ConcurrencyPolicy = Static<typeof ConcurrencyPolicy>

const text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }))
const HttpConfig = Closed({
  http_handle: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$',
      description:
        'Handle in the URL of the trigger, unique in the installation; the id of the trigger by ' +
        'default',
    }),
  ),
})
const ScheduleConfig = Closed({
  cron: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Cron expression with five fields, or a descriptor such as @hourly',
    }),
  ),
  interval: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 32,
      description: 'Interval as a duration; at least 10s',
    }),
  ),
  timezone: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'IANA name of the time zone; UTC by default; only with cron',
    }),
  ),
})
const EventConfig = Closed({
  event_type: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'Event type, or a prefix followed by .*',
  }),
  source_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  condition: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4096,
      description: 'Expression over event and meta; the trigger fires if it is true',
    }),
  ),
})
const trigger = {
  key: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$' })),
  name: text(160),
  enabled: Type.Optional(Type.Boolean()),
  concurrency_policy: Type.Optional(ConcurrencyPolicy),
  max_concurrent_runs: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
}
export const Trigger = Type.Union([
  Closed({ kind: Type.Literal('http'), ...trigger, config: Type.Optional(HttpConfig) }),
  Closed({ kind: Type.Literal('schedule'), ...trigger, config: ScheduleConfig }),
  Closed({ kind: Type.Literal('event'), ...trigger, config: EventConfig }),
  Closed({ kind: Type.Literal('manual'), ...trigger, config: Type.Optional(Closed({})) }),
])
export type Trigger = Static<typeof Trigger>

export const Repository = Closed({
  source: Type.Optional(Type.Enum(['static', 'match'])),
  provider: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: '^[a-z][a-z0-9_-]*$',
      description: 'Name of the repository host; github by default',
    }),
  ),
  id: Type.Optional(Type.Union([Type.Integer(), Type.String()])),
  full_name: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  ref: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  private: Type.Optional(Type.Boolean()),
  push: Type.Optional(Type.Boolean()),
})

const { steps, input: event, config, output, cleanup, limits, defaults, run_name } = Spec.properties
/**
 * The fields of a loop version. A request that contains any of them creates the next version, even
 * if the value is unchanged.
 */
export const authoring = {
  schema_version: Type.Optional(Type.Literal('1')),
  event,
  config,
  concurrency: Type.Optional(ConcurrencyPolicy),
  triggers: Type.Optional(Type.Array(Trigger, { maxItems: 50 })),
  repositories: Type.Optional(Type.Array(Repository, { maxItems: 20 })),
  steps: Type.Optional(Type.Array(steps.items, { maxItems: 200 })),
  output,
  cleanup,
  limits,
  defaults,
  run_name,
}
/** The fields of a loop, in addition to name and status, that can change without a new version. */
export const metadata = {
  description: Type.Optional(Type.String({ maxLength: 4096 })),
  agent_id: Type.Optional(Type.String({ maxLength: 128 })),
  settings: Type.Optional(JsonObject),
  default_config: Type.Optional(JsonObject),
  tags: Type.Optional(Tags),
}

export const Loop = Type.Object({
  id: Type.String(),
  name: Type.String(),
  status: Type.Enum([...loopStatuses, 'deleted'], {
    description: 'Status of the loop; deleted occurs only in the reply to the deletion',
  }),
  ...metadata,
  ...authoring,
  owner: Type.Optional(Type.String()),
  last_run_at: Type.Optional(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp,
  warnings: Type.Optional(SavedWarnings),
})
export type Loop = Static<typeof Loop>
/** The fields of a loop version, as stored. */
export type Authored = Pick<Loop, keyof typeof authoring>

/** Converts a loop to the workflow spec that its runs execute. */
export const specOf = ({
  steps = [],
  event,
  config,
  output,
  cleanup,
  limits,
  defaults,
  run_name,
}: Authored): Spec => ({
  steps: [...steps],
  ...(event && { input: event }),
  ...(config && { config }),
  ...(output && { output }),
  ...(cleanup && { cleanup }),
  ...(limits && { limits }),
  ...(defaults && { defaults }),
  ...(run_name && { run_name }),
})
/**
 * Returns the identifier of a trigger within its loop: its key, otherwise `#` and its index in the
 * list.
 */
export const triggerKey = ({ key }: Pick<Trigger, 'key'>, index: number): string =>
  key ?? `#${index}`

/** Returns the handle of an HTTP trigger; undefined if it has none, or is of another kind. */
export const httpHandle = (trigger: Trigger): string | undefined =>
  trigger.kind === 'http' ? trigger.config?.http_handle : undefined

/**
 * Returns the record of a loop that the service has paused.
 * @param updated_at the time of the pause; by default unchanged, as in events of earlier releases.
 */
export const pausedLoop = (loop: Loop, updated_at = loop.updated_at): Loop => ({
  ...loop,
  status: 'paused',
  updated_at,
})
