/** Shows the plan of a blueprint as text: one line per resource, and its differences per field. */
import { isSymbol, placeOf } from '../../../protocol/blueprints/references.ts'
import type { ApplyResult, Binding, Change } from '../../../protocol/blueprints/schema.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import { below } from '../../../protocol/rules/workflow-check/path.ts'
import { escapeControls } from '../../plain.ts'
import { unifiedDiff } from './text-diff.ts'

/** The version and protection that an apply sets on all bindings. */
export interface HeaderChange {
  readonly blueprint_version?: string
  readonly protect_resources?: boolean
}
/** Maximum number of characters of a shown value. Longer values are truncated. */
const MAX_VALUE_LENGTH = 60
/** Maximum number of differences shown per field, unless texts are compared line by line. */
const MAX_LINES = 40

const SIGNS: Readonly<Record<Change['action'], string>> = {
  created: '+ create',
  updated: '~ update',
  adopted: '> adopt',
  unchanged: '= unchanged',
  deleted: '- delete',
  released: '- release',
}
const words: Readonly<Record<Change['action'], string>> = {
  created: 'to create',
  updated: 'to update',
  adopted: 'to adopt',
  deleted: 'to delete',
  released: 'to release',
  unchanged: 'unchanged',
}
const done: Readonly<Record<Change['action'], string>> = {
  ...words,
  created: 'created',
  updated: 'updated',
  adopted: 'adopted',
  deleted: 'deleted',
  released: 'released',
}

const blueprintName = ({
  namespace,
  blueprint_key,
}: Pick<ApplyResult, 'namespace' | 'blueprint_key'>): string =>
  `${blueprint_key === undefined ? 'Blueprint without a key' : `Blueprint ${blueprint_key}`}` +
  `${namespace === undefined ? '' : ` in ${namespace}`}`

/** Whether a plan changes neither resources nor their protection. */
export const isEmpty = (
  { changes, bindings }: ApplyResult,
  { protect_resources }: HeaderChange,
): boolean =>
  changes.every(({ action }) => action === 'unchanged') &&
  (protect_resources === undefined ||
    bindings.every((binding) => binding.protected === protect_resources))
/** Whether applying the plan would store a different blueprint version. */
export const setsVersion = ({ bindings }: ApplyResult, { blueprint_version }: HeaderChange) =>
  blueprint_version !== undefined &&
  bindings.some((binding) => binding.blueprint_version !== blueprint_version)

interface Difference {
  readonly path: string
  readonly from: unknown
  readonly to: unknown
}
/** Yields the differences between two values. Compares objects and lists member by member. */
function* differences(from: unknown, to: unknown, path: string): Generator<Difference> {
  if (isJsonObject(from) && isJsonObject(to)) {
    for (const name of new Set([...Object.keys(from), ...Object.keys(to)]))
      yield* differences(from[name], to[name], below(path, name))
  } else if (Array.isArray(from) && Array.isArray(to)) {
    for (let index = 0; index < Math.max(from.length, to.length); index++)
      yield* differences(from[index], to[index], below(path, index))
  } else if (JSON.stringify(from) !== JSON.stringify(to)) yield { path, from, to }
}
const escaped = (text: string): string =>
  escapeControls(text.replace(/[\n\t]/g, (sign) => JSON.stringify(sign).slice(1, -1)))
function shown(value: unknown): string {
  if (value === undefined) return '(none)'
  if (typeof value === 'string' && value.includes('\n'))
    return `(${value.split('\n').length} lines)`
  const text = escaped(JSON.stringify(value))
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH - 1)}…` : text
}
const isLong = (value: unknown): boolean =>
  typeof value === 'string' && (value.includes('\n') || value.length > MAX_VALUE_LENGTH)
const isText = (value: unknown): value is string | undefined =>
  value === undefined || typeof value === 'string'

/** Formats the differences of a field. With `texts`, long texts are compared line by line. */
function fieldLines(
  { field, from, to }: { field: string; from?: unknown; to?: unknown },
  texts: boolean,
): string[] {
  const lines = [...differences(from, to, field)].flatMap((one) => {
    const isDiff =
      texts && isText(one.from) && isText(one.to) && (isLong(one.from) || isLong(one.to))
    return isDiff
      ? [
          `      ${one.path}:`,
          ...unifiedDiff(one.from ?? '', one.to ?? '').map(
            (line) => `        ${line.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?')}`,
          ),
        ]
      : [`      ${one.path}: ${shown(one.from)} → ${shown(one.to)}`]
  })
  return texts || lines.length <= MAX_LINES
    ? lines
    : [...lines.slice(0, MAX_LINES), `      … and ${lines.length - MAX_LINES} more differences`]
}
const resourceLine = ({ resource_type, key }: Pick<Binding, 'resource_type' | 'key'>): string =>
  `${resource_type} ${escaped(key)}`

/**
 * Returns a difference with a reference such as `{key: tone}` in place of each resource that the
 * apply will create. The plan has the text `=type/key` there, because the resource has no id yet.
 */
function withKeys<T extends { field: string; to?: unknown }>(
  type: Change['resource_type'],
  one: T,
): T {
  const { refers } = resourceFacts[type].fields[one.field] ?? {}
  if (!refers || one.to === undefined) return one
  const reference = (id: unknown): unknown =>
    isSymbol(id) ? { key: id.slice(placeOf(refers.type, '').length + 1) } : id
  return { ...one, to: Array.isArray(one.to) ? one.to.map(reference) : reference(one.to) }
}

function changeLines(change: Change, texts: boolean): string[] {
  const { action, fields = [], drift = [], omitted = [] } = change
  const driftLines = drift.map(
    ({ field, to }) => `    ! drift: ${field} was changed outside of the blueprint to ${shown(to)}`,
  )
  const omittedLines = omitted.map(
    (field) => `    ? ${field} is not named any more and stays; an empty value removes it`,
  )
  if (action === 'unchanged' && driftLines.length + omittedLines.length === 0) return []
  return [
    `  ${SIGNS[action]} ${resourceLine(change)}`,
    ...driftLines,
    ...omittedLines,
    ...(action === 'created'
      ? []
      : fields.flatMap((field) => fieldLines(withKeys(change.resource_type, field), texts))),
  ]
}
const counted = (
  changes: readonly Change[],
  names: Readonly<Record<Change['action'], string>>,
): string =>
  (Object.keys(names) as Change['action'][])
    .map(
      (action) => [changes.filter((one) => one.action === action).length, names[action]] as const,
    )
    .filter(([count]) => count > 0)
    .map(([count, name]) => `${count} ${name}`)
    .join(', ') || 'no resources'

/**
 * Formats a plan as lines of text.
 * @param texts whether long texts are compared line by line.
 */
export function planLines(plan: ApplyResult, header: HeaderChange, texts: boolean): string[] {
  const { changes, bindings, orphans = [] } = plan
  const pruned = new Set(
    changes
      .filter(({ action }) => action === 'deleted' || action === 'released')
      .map(({ resource_id }) => resource_id),
  )
  const left = orphans.filter(({ resource_id }) => !pruned.has(resource_id))
  const { protect_resources } = header
  const reprotected =
    protect_resources === undefined
      ? []
      : bindings.filter((binding) => binding.protected !== protect_resources)
  return [
    `${blueprintName(plan)}:`,
    ...changes.flatMap((change) => changeLines(change, texts)),
    ...(reprotected.length > 0
      ? [`  ~ ${protect_resources ? 'protect' : 'stop to protect'} ${reprotected.length} resources`]
      : []),
    ...(left.length > 0
      ? [
          '  Resources of this blueprint that the files do not name (they stay without --prune):',
          ...left.map((binding) => `    ? ${resourceLine(binding)}`),
        ]
      : []),
    `  Plan: ${counted(changes, words)}.`,
  ]
}
/** Formats the result of an apply. */
export const resultLine = (result: ApplyResult): string =>
  `${blueprintName(result)}: ${counted(result.changes, done)}.`
