/**
 * Names of source events: their grammar, the names that triggers, waits, webhooks and clients may
 * use, and the matching of patterns. `catalog.ts` describes the types.
 */
import type { FieldError } from '../errors.ts'
import { isProvider } from './integrations.ts'

/**
 * The maximum length of an event type or pattern in characters. An event type consists of segments
 * of letters, digits, `_` and `-`, joined by dots. One segment is enough. A pattern ends in `.*`.
 * The grammar is the same for publishing, triggers, waits and webhooks. Signals have a separate
 * grammar.
 */
const MAX_LENGTH = 128
/**
 * Types of signals. The name after `signal.` follows the rule for signal names that clients send.
 */
const SIGNAL = /^signal\.[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const EXACT = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
const PATTERN = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.\*$/
const internal: ReadonlySet<string> = new Set([
  'interaction.http_subscriber.dispatch',
  'loop.http_trigger.received',
  'loop.run_allocation.completed',
  'loop.run_allocation.failed',
  'loop.schedule.tick',
  'loop_run.continue',
  'loop_run.resume',
  'run.progress_initial',
  'run.resume',
  'schedule.tick',
])
/**
 * The event types that the service publishes, except signals and the events of providers. Under the
 * prefixes of the service, only these types are `ready` in the catalog. Producers take their types
 * from this list (`ServicePublication`), so every published type is in the catalog.
 */
const emitted = [
  'artifact.created',
  'check.passed',
  'check.failed',
  'email.received',
  'http_trigger.received',
  'interaction.created',
  'interaction.resolved',
  'loop.auto_paused',
  'run.completed',
  'run.failed',
  'run.cancelled',
  'run.budget_exceeded',
  'run.progress_stalled',
  'session.message.created',
  'table.row.inserted',
  'table.row.updated',
  'table.row.deleted',
] as const
/** The type of an event that the service publishes, except signals and the events of providers. */
export type EmittedType = (typeof emitted)[number]
export const emittedTypes: ReadonlySet<string> = new Set<EmittedType>(emitted)

/** Prefixes of the service's own events, with their display names in the catalog. */
export const capabilities: Readonly<Record<string, string>> = {
  artifact: 'Artifacts',
  check: 'Checks',
  email: 'E-mail',
  http_trigger: 'HTTP triggers',
  interaction: 'Interactions',
  loop: 'Loops',
  run: 'Runs',
  session: 'Sessions',
  table: 'Tables',
}
/** Additional prefixes that clients cannot use, including those of signals and internal events. */
export const reservedPrefixes: Readonly<Record<string, 'capability' | 'utility'>> = {
  signal: 'capability',
  loop_run: 'capability',
  schedule: 'capability',
  channel: 'capability',
  test: 'utility',
}

const isExact = (event_type: string): boolean =>
  event_type.length <= MAX_LENGTH && EXACT.test(event_type)
const isFamily = (event_type: string): boolean =>
  event_type.length <= MAX_LENGTH && PATTERN.test(event_type)
const isSignal = (event_type: string): boolean => event_type.startsWith('signal.')
/** Whether an event is internal: only the service itself receives it. */
export const isInternal = (event_type: string): boolean => internal.has(event_type)
/**
 * Whether an event matches no trigger and no pattern of `fitsType`. True for internal events, and
 * for signals, which only webhooks and waits for the exact type receive.
 */
export const isPrivate = (event_type: string): boolean =>
  isSignal(event_type) || internal.has(event_type)
/**
 * Whether an event type matches an exact type, or a pattern such as `table.row.*`. No pattern
 * matches private events (`isPrivate`).
 */
export const fitsType = (pattern: string, event_type: string): boolean =>
  pattern.endsWith('.*')
    ? event_type.startsWith(pattern.slice(0, -1)) && !isPrivate(event_type)
    : pattern === event_type

/**
 * Whether an event of this type or pattern can be published. Signals, which clients send, can
 * always be published, but no pattern matches them. Under the prefixes of the service, only the
 * types in `emittedTypes` can be published. Under any other prefix, clients or providers can publish
 * every type.
 */
export function isPublishable(pattern: string): boolean {
  if (isSignal(pattern)) return !pattern.endsWith('.*')
  const prefix = pattern.slice(0, Math.max(0, pattern.indexOf('.')))
  if (!Object.hasOwn(capabilities, prefix) && !Object.hasOwn(reservedPrefixes, prefix)) return true
  return [...emittedTypes].some((event_type) => fitsType(pattern, event_type))
}

/** Returns the faults of the event type of a trigger or a wait. Only a wait may use a signal. */
export function checkEventType(
  event_type: string,
  field: string,
  by: 'trigger' | 'wait',
): FieldError[] {
  if (internal.has(event_type))
    return [
      {
        field,
        message:
          'is an event that the service sends to itself; ' +
          `${by === 'wait' ? 'waits' : 'triggers'} cannot use it`,
        actual: event_type,
      },
    ]
  if (isSignal(event_type)) {
    if (by === 'trigger')
      return [{ field, message: 'is a signal; signals only resume runs', actual: event_type }]
    return SIGNAL.test(event_type)
      ? []
      : [
          {
            field,
            message: 'is not the exact name of a signal, such as signal.approved',
            actual: event_type,
          },
        ]
  }
  return isExact(event_type) || isFamily(event_type)
    ? []
    : [
        {
          field,
          message:
            'is not the type of an event, such as table.row.inserted or table.row.*, ' +
            `of at most ${MAX_LENGTH} characters`,
          actual: event_type,
        },
      ]
}

/**
 * Returns the faults of an event type that a client publishes. Prefixes of the service and of
 * providers are refused.
 */
export function checkCustomType(event_type: string, field: string): FieldError[] {
  const prefix = event_type.slice(0, Math.max(0, event_type.indexOf('.')))
  if (!isExact(event_type))
    return [
      {
        field,
        message:
          'must be segments of letters, digits, _ and - joined by dots, such as order.paid, ' +
          `of at most ${MAX_LENGTH} characters`,
        actual: event_type,
      },
    ]
  if (internal.has(event_type))
    return [{ field, message: 'is an event that the service sends to itself', actual: event_type }]
  // A client that could publish an event of a provider could impersonate the provider, whose
  // webhooks are verified by a signature or a token.
  const owner =
    Object.hasOwn(capabilities, prefix) || Object.hasOwn(reservedPrefixes, prefix)
      ? 'the service itself'
      : isProvider(prefix)
        ? `the integration ${prefix}`
        : undefined
  return owner === undefined
    ? []
    : [
        {
          field,
          message: `begins with ${prefix}., which is for events of ${owner}`,
          actual: event_type,
        },
      ]
}

/**
 * Returns the faults of the types to which a webhook listens. Exact types, patterns, signals, and
 * `*` for every event are allowed.
 */
export const checkHookTypes = (events: readonly string[], field: string): FieldError[] =>
  events.flatMap((event_type, index) =>
    event_type === '*' || isExact(event_type) || isFamily(event_type) || SIGNAL.test(event_type)
      ? []
      : [
          {
            field: `${field}[${index}]`,
            message: `is not the type of an event, such as run.failed, run.* or *, of at most ${MAX_LENGTH} characters`,
            actual: event_type,
          },
        ],
  )
