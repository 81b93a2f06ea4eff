/**
 * The presentation of granted tools to a model, and the interpretation of its tool calls. With the
 * presentation `flat`, the model receives one tool per action. With `meta`, it receives one tool
 * per group of actions, with the input `{command, args}`. The group is the part of an action name
 * before the first dot. An action without a group is a separate tool. Tool names consist of at most
 * 64 letters, digits, `_` and `-`, as models require. A number is appended to a duplicate name.
 */
import { builtinGroups } from '../../actions/builtin.ts'
import type { EffectiveSkill } from '../../agents/definition.ts'
import { textSelects } from '../../agents/selectors.ts'
import type { JsonObject } from '../../common.ts'
import { toolName } from '../../naming.ts'
import { isJsonObject } from '../../rules/json-object.ts'
import type { GrantedTool, TurnDefinition } from './definition.ts'

/** A tool as it is shown to a model. */
export interface ShownTool {
  readonly name: string
  readonly description?: string
  readonly input_schema: JsonObject
}
/** The tools that the service itself defines. */
export type Reserved = 'submit_output' | 'ask' | 'skill'
/**
 * The operation that a tool call of the model requests. The result of `help` and of `fault` is
 * their `text`.
 */
export type ToolOperation =
  | { readonly kind: 'action'; readonly tool: GrantedTool; readonly input: JsonObject }
  | { readonly kind: 'reserved'; readonly which: Reserved }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'fault'; readonly text: string }

const reservedNames = (brand: string): Readonly<Record<Reserved, string>> => ({
  submit_output: `${brand}_submit_output`,
  ask: `${brand}_ask_person`,
  skill: 'invoke_skill',
})

const anything: JsonObject = { type: 'object', properties: {} }
const groupOf = ({ name }: GrantedTool): string => name.slice(0, Math.max(0, name.indexOf('.')))
const commandOf = ({ name }: GrantedTool): string => name.slice(name.indexOf('.') + 1)

/** A tool of the model. It represents one action (`one`) or a group of actions (`group`). */
interface Entry {
  readonly name: string
  readonly one?: GrantedTool
  readonly group?: readonly GrantedTool[]
}
function entriesOf(
  { tools, tool_presentation }: TurnDefinition,
  taken: readonly string[],
): Entry[] {
  const used = new Set(taken)
  const named = (wanted: string): string => {
    let name = toolName(wanted)
    for (let n = 2; used.has(name); n++) name = `${toolName(wanted).slice(0, 60)}_${n}`
    used.add(name)
    return name
  }
  if (tool_presentation === 'flat')
    return tools.map((tool) => ({ name: named(tool.name), one: tool }))
  const groups = new Map<string, GrantedTool[]>()
  const alone: GrantedTool[] = []
  for (const tool of tools) {
    const group = groupOf(tool)
    if (group === '') alone.push(tool)
    else groups.set(group, [...(groups.get(group) ?? []), tool])
  }
  return [
    ...[...groups].map(([group, members]) => ({ name: named(group), group: members })),
    ...alone.map((tool) => ({ name: named(tool.name), one: tool })),
  ]
}

const line = (tool: GrantedTool): string =>
  `- ${commandOf(tool)}${tool.description ? `: ${tool.description}` : ''}`
const shown = ({ name, one, group = [] }: Entry): ShownTool =>
  one
    ? {
        name,
        ...(one.description !== undefined && { description: one.description }),
        input_schema: one.input_schema ?? anything,
      }
    : {
        name,
        description:
          'Commands, each with args; the command help describes the args of one (args.command).\n' +
          group.map(line).join('\n'),
        input_schema: {
          type: 'object',
          properties: {
            command: { type: 'string', enum: [...group.map(commandOf), 'help'] },
            args: { type: 'object' },
          },
          required: ['command'],
        },
      }

/**
 * Returns the tools of a turn as the model receives them.
 * @param brand lower-case brand.
 * @param output output schema of the turn, if it has one.
 */
export function presentTools(
  definition: TurnDefinition,
  brand: string,
  output: JsonObject | undefined,
): ShownTool[] {
  const names = reservedNames(brand)
  const { skills } = definition
  return [
    ...entriesOf(definition, Object.values(names)).map(shown),
    {
      name: names.ask,
      description: 'Ask people and wait for the answer, which may take long.',
      input_schema: askSchema,
    },
    ...(skills.length > 0
      ? [
          {
            name: names.skill,
            description: `Load a skill and follow it.\n${skills.map(describe).join('\n')}`,
            input_schema: {
              type: 'object',
              properties: { name: { type: 'string', enum: skills.map(({ name }) => name) } },
              required: ['name'],
            },
          },
        ]
      : []),
    ...(output
      ? [
          {
            name: names.submit_output,
            description: 'Submit the result of the whole task, once it is done.',
            input_schema: output,
          },
        ]
      : []),
  ]
}
const describe = ({ name, description }: EffectiveSkill): string =>
  `- ${name}${description ? `: ${description}` : ''}`
/** Schema of the arguments of the tool that opens an interaction. */
export const askSchema: JsonObject = {
  type: 'object',
  required: ['title'],
  additionalProperties: false,
  properties: {
    kind: {
      type: 'string',
      enum: ['request_information', 'request_approval', 'request_review', 'assign_work'],
    },
    title: { type: 'string', minLength: 1, maxLength: 512 },
    description: { type: 'string', maxLength: 16_384 },
    target_user_ids: {
      type: 'array',
      items: { type: 'string', minLength: 1, maxLength: 128 },
      maxItems: 100,
      description: 'Ids of the people to ask; the requester of the turn by default',
    },
    options: {
      type: 'array',
      maxItems: 100,
      items: {
        type: 'object',
        required: ['value', 'label'],
        properties: {
          value: { type: 'string', minLength: 1, maxLength: 1024 },
          label: { type: 'string', minLength: 1, maxLength: 1024 },
        },
      },
    },
    expires_in_seconds: { type: 'integer', minimum: 1, maximum: 2_592_000 },
  },
}

/**
 * Interprets a tool call of the model.
 * @param brand lower-case brand.
 * @param output output schema of the turn, if it has one.
 */
export function operationOf(
  definition: TurnDefinition,
  brand: string,
  output: JsonObject | undefined,
  name: string,
  input: JsonObject,
): ToolOperation {
  const names = reservedNames(brand)
  if (name === names.ask) return { kind: 'reserved', which: 'ask' }
  if (name === names.skill && definition.skills.length > 0)
    return { kind: 'reserved', which: 'skill' }
  if (name === names.submit_output && output) return { kind: 'reserved', which: 'submit_output' }
  const entries = entriesOf(definition, Object.values(names))
  const entry = entries.find((one) => one.name === name)
  if (!entry)
    return {
      kind: 'fault',
      text: `There is no tool ${JSON.stringify(name)}. Tools: ${presentTools(
        definition,
        brand,
        output,
      )
        .map((tool) => tool.name)
        .join(', ')}`,
    }
  if (entry.one) return { kind: 'action', tool: entry.one, input }
  const group = entry.group ?? []
  const { command, args } = input
  const parameters: JsonObject = isJsonObject(args) ? args : {}
  if (command === 'help') return { kind: 'help', text: help(group, parameters['command']) }
  const tool = group.find((one) => commandOf(one) === command)
  return tool
    ? { kind: 'action', tool, input: parameters }
    : {
        kind: 'fault',
        text:
          `${name} has no command ${JSON.stringify(command ?? null)}. ` +
          `Commands: ${group.map(commandOf).join(', ')}, help`,
      }
}
function help(group: readonly GrantedTool[], command: unknown): string {
  const about = group.filter((tool) => command === undefined || commandOf(tool) === command)
  return JSON.stringify(
    about.map((tool) => ({
      command: commandOf(tool),
      ...(tool.description !== undefined && { description: tool.description }),
      args: tool.input_schema ?? anything,
    })),
  )
}

/**
 * Whether the allowed tools of a skill include an action.
 * @param brand lower-case brand.
 */
export function allows(
  allowed: readonly string[],
  { name, kind }: GrantedTool,
  brand: string,
): boolean {
  const source = kind === 'builtin' && !name.startsWith('workflow.') ? 'platform' : 'custom'
  const groups = builtinGroups(brand)
  return allowed.some((text) => textSelects(text, { name, source }, groups))
}
