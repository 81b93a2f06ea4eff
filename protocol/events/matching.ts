/** The rule by which a source event matches a trigger or a wait. */
import type { JsonObject } from '../common.ts'
import { predicate } from '../rules/expressions/expression.ts'
import { matches } from '../rules/expressions/template.ts'
import type { Awaited, SourceEvent, Watch } from './sources.ts'
import { fitsType } from './types.ts'

/**
 * The fields of `meta` that identify containers of the source of an event, by kind of source. A
 * trigger or wait may specify a container instead of the exact source: for example, the loop that
 * contains a run.
 */
const scopes: Readonly<Record<string, readonly string[]>> = {
  table_row: ['table_id', 'table_name'],
  loop_run: ['loop_id', 'definition_id'],
  session: ['agent_id'],
  email: ['agent_id'],
  http_trigger: ['http_handle'],
  artifact: ['loop_run_id'],
}

/**
 * Returns all values with which a trigger or wait may refer to the source of an event: the id of
 * the source, and the ids and names of its containers.
 */
export function sourcesOf({
  source_id,
  source_kind,
  meta,
}: Partial<Pick<SourceEvent, 'source_id' | 'source_kind'>> & {
  readonly meta: JsonObject
}): ReadonlySet<unknown> {
  const names =
    source_kind !== undefined && Object.hasOwn(scopes, source_kind)
      ? scopes[source_kind]
      : undefined
  return new Set([source_id, ...(names?.map((name) => meta[name]) ?? [])])
}

/**
 * Whether an event matches the type, source, fields and condition that a trigger or wait requires.
 * Absent requirements match every event.
 * @throws ExpressionError when the condition cannot be evaluated.
 */
export const fits = (
  wanted: Pick<Watch & Awaited, 'event_type'> &
    Partial<Pick<Awaited, 'source_id' | 'match' | 'condition'>>,
  event: Pick<SourceEvent, 'event_type' | 'event' | 'meta'> &
    Partial<Pick<SourceEvent, 'source_id' | 'source_kind'>>,
): boolean =>
  fitsType(wanted.event_type, event.event_type) &&
  (wanted.source_id === undefined || sourcesOf(event).has(wanted.source_id)) &&
  (!wanted.match || matches(wanted.match, event)) &&
  (wanted.condition === undefined ||
    predicate(wanted.condition, { event: event.event, meta: event.meta }))
