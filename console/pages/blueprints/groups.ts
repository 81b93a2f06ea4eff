/** Groups bindings by blueprint, and formats and sorts the changes of a plan. */
import type { Binding, Change } from '../../../protocol/blueprints/schema.ts'

/** The bindings of one blueprint. */
export interface Group {
  readonly namespace: string
  readonly key: string
  readonly bindings: readonly Binding[]
}

/** Groups bindings by blueprint, sorted by namespace and key. */
export function groupsOf(bindings: readonly Binding[]): readonly Group[] {
  const groups = new Map<string, Binding[]>()
  for (const binding of bindings) {
    const name = JSON.stringify([binding.namespace ?? '', binding.blueprint_key ?? ''])
    const group = groups.get(name)
    if (group) group.push(binding)
    else groups.set(name, [binding])
  }
  return [...groups]
    .map(([name, own]): Group => {
      const [namespace, key] = JSON.parse(name) as [string, string]
      return { namespace, key, bindings: own }
    })
    .sort((a, b) => a.namespace.localeCompare(b.namespace) || a.key.localeCompare(b.key))
}

/** Returns the path and query of a blueprint's page. */
export const groupHref = (
  project: string,
  { namespace, key }: Pick<Group, 'namespace' | 'key'>,
): string =>
  `/p/${encodeURIComponent(project)}/blueprints/view?${new URLSearchParams({
    ...(namespace !== '' && { namespace }),
    ...(key !== '' && { key }),
  })}`

/** Returns whether all, some or none of the bindings are protected. */
export function protectionOf(bindings: readonly Binding[]): 'all' | 'some' | 'none' {
  const count = bindings.filter((binding) => binding.protected).length
  return count === 0 ? 'none' : count === bindings.length ? 'all' : 'some'
}

/** Returns the value of a field as text for a diff; '' if it is absent. */
export const fieldText = (value: unknown): string =>
  value === undefined
    ? ''
    : typeof value === 'string'
      ? value
      : (JSON.stringify(value, undefined, 2) ?? '')

const ORDER: readonly Change['action'][] = [
  'deleted',
  'released',
  'created',
  'adopted',
  'updated',
  'unchanged',
]
/** Sorts changes: deletions first, unchanged resources last. */
export const sortedChanges = (changes: readonly Change[]): readonly Change[] =>
  [...changes].sort((a, b) => ORDER.indexOf(a.action) - ORDER.indexOf(b.action))

/** Returns the number of changes per action, in the order of `sortedChanges`. */
export const countsOf = (
  changes: readonly Change[],
): readonly (readonly [Change['action'], number])[] =>
  ORDER.flatMap((action) => {
    const count = changes.filter((change) => change.action === action).length
    return count === 0 ? [] : [[action, count] as const]
  })
