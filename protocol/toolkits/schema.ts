/**
 * Toolkits: named sets of tools that are assigned to agents. A selector may match actions that do
 * not exist yet.
 */
import { type Static, Type } from 'typebox'
import { Closed, Tags, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'

/** Limits of toolkits. Lengths are in characters. */
export const toolkitLimits = {
  name: 80,
  description: 1000,
  selector: 256,
  selectors: 200,
  toolkits: 500,
  assigned: 64,
} as const

const text = { minLength: 1, maxLength: toolkitLimits.selector, pattern: '^\\S+$' }
export const Selector = Closed({
  selector_type: Type.Enum(['exact', 'group', 'platform', 'custom', 'wildcard']),
  selector: Type.String(text),
})
/**
 * `exact`: the action with this name; `group`: the members of a named group, or all names below it;
 * `platform` and `custom`: a pattern over the actions of the service, or over those of the project
 * and the organization; `wildcard`: a pattern over all actions.
 */
export type Selector = Static<typeof Selector>
const Selectors = Type.Array(Selector, { maxItems: toolkitLimits.selectors })
const { selector_type, selector } = Selector.properties
const Grant = Closed({
  selector_type: Type.Optional(selector_type),
  selector: Type.Optional(selector),
  action_name: Type.Optional(Type.String({ ...text, description: 'An older way to say exact' })),
})
type Grant = Static<typeof Grant>
/** Checks the rules for the selectors of a request that a schema cannot express. */
export const checkGrants = ({
  actions = [],
}: {
  readonly actions?: readonly Grant[]
}): FieldError[] =>
  actions.flatMap((grant, index) => {
    const missing = (['selector_type', 'selector'] as const).filter(
      (name) => grant[name] === undefined,
    )
    if (grant.action_name === undefined)
      return missing.map((name) => ({ field: `actions[${index}].${name}`, message: 'is required' }))
    return missing.length < 2
      ? [
          {
            field: `actions[${index}].action_name`,
            message: 'stands alone: it is an older way to say exact',
          },
        ]
      : []
  })
/** The stored form of a selector in a request. */
export const selectorOf = ({
  selector_type = 'exact',
  selector = '',
  action_name,
}: Grant): Selector => ({ selector_type, selector: action_name ?? selector })

export const Toolkit = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  source: Type.Enum(['system', 'project']),
  tags: Type.Optional(Tags),
  actions: Selectors,
  created_by: Type.Optional(Type.String()),
  updated_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Toolkit = Static<typeof Toolkit>
/** The body of a creation or a replacement. */
export const ToolkitBody = Closed({
  name: Type.String({ minLength: 1, maxLength: toolkitLimits.name }),
  description: Type.Optional(Type.String({ maxLength: toolkitLimits.description })),
  actions: Type.Optional(Type.Array(Grant, { maxItems: toolkitLimits.selectors })),
  tags: Type.Optional(Tags),
})

export type ToolkitEvent =
  | (Event & { readonly type: 'toolkit.created'; readonly id: string; readonly toolkit: Toolkit })
  | (Event & {
      readonly type: 'toolkit.updated'
      readonly id: string
      readonly toolkit: Patch<Toolkit>
      readonly changes: Changes
    })
  /** Its assignments to agents are deleted with it. */
  | (Event & { readonly type: 'toolkit.deleted'; readonly id: string; readonly name: string })

/**
 * Toolkits that every project has.
 * @param brand lower case.
 * @param since the creation time of the project.
 */
export const systemToolkits = (brand: string, since: string): Toolkit[] => [
  {
    id: 'kit_system_all',
    name: 'Everything',
    description: 'All actions of the project, of the organization and of the service.',
    source: 'system',
    actions: [{ selector_type: 'wildcard', selector: '*' }],
    created_at: since,
    updated_at: since,
  },
  {
    id: 'kit_system_memory',
    name: 'Memory',
    description: "Remembering, recalling and forgetting: the agent's own memory.",
    source: 'system',
    actions: [{ selector_type: 'group', selector: `${brand}.memory` }],
    created_at: since,
    updated_at: since,
  },
]
/** Whether this is the id of one of the service's toolkits. */
export const isSystemToolkit = (id: string): boolean =>
  id === 'kit_system_all' || id === 'kit_system_memory'
