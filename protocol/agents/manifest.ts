/**
 * Computes the tool manifest of an agent: the tools that its toolkits grant from the current
 * catalog, restricted by the loaded skill. The manifest contains a warning for each selector
 * without a match, for each tool that a skill allows but the agent lacks, and for each action that
 * is not ready.
 */
import { type Static, Type } from 'typebox'
import { builtinGroups } from '../actions/builtin.ts'
import { CatalogEntry } from '../actions/rows.ts'
import type { Skill } from '../skills/schema.ts'
import type { Toolkit } from '../toolkits/schema.ts'
import { allowedBy, resolveSelectors, selects, textSelects } from './selectors.ts'

export const Warning = Type.Object({
  code: Type.String({
    description: 'Kind of the warning: selector_unmatched, skill_tool_missing or action_not_ready',
  }),
  message: Type.String(),
  skill_id: Type.Optional(Type.String()),
  toolkit_id: Type.Optional(Type.String()),
  tool: Type.Optional(Type.String()),
  action: Type.Optional(Type.String()),
})
const Names = Type.Array(Type.String())
export const ToolManifest = Type.Object({
  agent_id: Type.String(),
  policy_hash: Type.String({
    description: 'Hash of the tools and the skills; it changes only when they change',
  }),
  toolkit_ids: Names,
  tools: Type.Array(CatalogEntry),
  groups_resolved: Type.Optional(Type.Array(Type.Object({ name: Type.String(), members: Names }))),
  skills: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      description: Type.Optional(Type.String()),
      active: Type.Boolean(),
      missing_required: Type.Optional(Names),
      missing_recommended: Type.Optional(Names),
    }),
  ),
  warnings: Type.Array(Warning),
})
export type ToolManifest = Static<typeof ToolManifest>

/**
 * The input of `manifestOf`. `skill_name`: name of the skill that the turn has loaded, if any.
 * `allowed_tools`: only tools that match one of these names and patterns are included; an empty
 * list includes all tools.
 */
export interface ManifestOf {
  readonly agent_id: string
  readonly toolkits: readonly Toolkit[]
  readonly skills: readonly Skill[]
  readonly entries: readonly CatalogEntry[]
  readonly skill_name?: string
  readonly allowed_tools?: readonly string[]
  /** The brand in lower case. */
  readonly brand: string
}

/**
 * Whether a tool is exempt from the restrictions of a loaded skill. Only the actions on the agent's
 * memory are exempt.
 */
export const isExempt = (name: string, brand: string): boolean =>
  name.startsWith(`${brand}.memory.`)

/**
 * Returns the manifest without its hash (`manifest`), and the text from which the caller computes
 * the hash (`policy`).
 */
export function manifestOf({
  agent_id,
  toolkits,
  skills,
  entries,
  skill_name,
  allowed_tools = [],
  brand,
}: ManifestOf): { readonly manifest: Omit<ToolManifest, 'policy_hash'>; readonly policy: string } {
  const named = builtinGroups(brand)
  const granted = resolveSelectors(
    toolkits.flatMap(({ actions }) => actions),
    entries,
    named,
  ).matched
  const active = skills.find(({ name }) => name === skill_name)
  const bySkill = active ? allowedBy(active.allowed_tools ?? [], granted, named) : granted
  const usable = allowedBy(
    allowed_tools,
    granted.filter((entry) => bySkill.includes(entry) || isExempt(entry.name, brand)),
    named,
  )
  const groups = [
    ...new Set(
      toolkits
        .flatMap(({ actions }) => actions)
        .filter(({ selector_type }) => selector_type === 'group')
        .map(({ selector }) => selector),
    ),
  ].map((name) => ({
    name,
    members: entries
      .filter((entry) => selects({ selector_type: 'group', selector: name }, entry, named))
      .map((entry) => entry.name),
  }))
  const missing = (skill: Skill) =>
    (skill.allowed_tools ?? []).filter(
      (text) => !granted.some((entry) => textSelects(text, entry, named)),
    )
  const shown = skills.map((skill) => {
    const [patterns, names] = [
      missing(skill).filter((text) => text.includes('*')),
      missing(skill).filter((text) => !text.includes('*')),
    ]
    return {
      id: skill.id,
      name: skill.name,
      ...(skill.description !== undefined && { description: skill.description }),
      active: skill === active,
      ...(names.length > 0 && { missing_required: names }),
      ...(patterns.length > 0 && { missing_recommended: patterns }),
    }
  })
  const warnings: ToolManifest['warnings'] = [
    ...toolkits.flatMap((toolkit) =>
      resolveSelectors(toolkit.actions, entries, named).unmatched.map(
        ({ selector_type, selector }) => ({
          code: 'selector_unmatched',
          message: `The toolkit ${toolkit.name} names no action with ${selector_type} ${selector}.`,
          toolkit_id: toolkit.id,
          tool: selector,
        }),
      ),
    ),
    ...skills.flatMap((skill) =>
      missing(skill).map((tool) => ({
        code: 'skill_tool_missing',
        message: `The skill ${skill.name} allows ${tool}, which the agent does not have.`,
        skill_id: skill.id,
        tool,
      })),
    ),
    ...usable
      .filter(({ readiness }) => readiness !== 'ready')
      .map(({ name, readiness_reason }) => ({
        code: 'action_not_ready',
        message: `The action ${name} is not ready${readiness_reason === undefined ? '' : `: ${readiness_reason}`}.`,
        action: name,
      })),
  ]
  return {
    manifest: {
      agent_id,
      toolkit_ids: toolkits.map(({ id }) => id),
      tools: [...usable],
      ...(groups.length > 0 && { groups_resolved: groups }),
      skills: shown,
      warnings,
    },
    policy: JSON.stringify([
      usable.map(({ name, definition_scope }) => [name, definition_scope]),
      skills.map(({ id, name, instructions, allowed_tools: allowed = [] }) => [
        id,
        name,
        instructions,
        allowed,
        id === active?.id,
      ]),
    ]),
  }
}
