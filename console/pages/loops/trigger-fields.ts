/** Converts a trigger to the fields of its dialog, and back. */
import type { Trigger } from '../../../protocol/loops/schema.ts'

/** The entered text of each field; '' if the trigger lacks the member. */
export interface TriggerFields {
  readonly kind: Trigger['kind']
  readonly enabled: boolean
  readonly key: string
  readonly name: string
  readonly cron: string
  readonly interval: string
  readonly timezone: string
  readonly event_type: string
  readonly source_id: string
  readonly condition: string
  readonly http_handle: string
}

/** The time zone of the browser. */
export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

/** Returns the fields of a trigger; without one, the fields for a new trigger. */
export function writtenTrigger(trigger: Trigger | undefined): TriggerFields {
  const config = (trigger?.config ?? {}) as Readonly<Record<string, string | undefined>>
  return {
    kind: trigger?.kind ?? 'schedule',
    enabled: trigger?.enabled !== false,
    key: trigger?.key ?? '',
    name: trigger?.name ?? '',
    cron: config['cron'] ?? '',
    interval: config['interval'] ?? '',
    // A new schedule uses the time zone of its author.
    timezone: config['timezone'] ?? (trigger ? '' : browserZone()),
    event_type: config['event_type'] ?? '',
    source_id: config['source_id'] ?? '',
    condition: config['condition'] ?? '',
    http_handle: config['http_handle'] ?? '',
  }
}

const given = <K extends string>(
  fields: Readonly<Record<K, string>>,
  names: readonly K[],
): Partial<Record<K, string>> =>
  Object.fromEntries(
    names.flatMap((name) => (fields[name].trim() === '' ? [] : [[name, fields[name].trim()]])),
  ) as Partial<Record<K, string>>

/**
 * Returns the trigger that the fields describe. The concurrency settings of the old trigger are
 * kept.
 */
export function triggerOf(fields: TriggerFields, old: Trigger | undefined): Trigger {
  const { concurrency_policy, max_concurrent_runs } = old ?? {}
  const common = {
    ...given(fields, ['key', 'name']),
    ...(!fields.enabled && { enabled: false }),
    ...(concurrency_policy !== undefined && { concurrency_policy }),
    ...(max_concurrent_runs !== undefined && { max_concurrent_runs }),
  }
  switch (fields.kind) {
    case 'schedule':
      return {
        kind: 'schedule',
        ...common,
        // A time zone applies only to a cron pattern.
        config: given(
          fields,
          fields.cron === '' && fields.interval !== ''
            ? ['interval']
            : ['cron', 'interval', 'timezone'],
        ),
      }
    case 'event':
      return {
        kind: 'event',
        ...common,
        config: {
          event_type: fields.event_type.trim(),
          ...given(fields, ['source_id', 'condition']),
        },
      }
    case 'http': {
      const config = given(fields, ['http_handle'])
      return { kind: 'http', ...common, ...(Object.keys(config).length > 0 && { config }) }
    }
    default:
      return { kind: 'manual', ...common }
  }
}
