/**
 * Computes the answer of a script to a request. The computation is pure: the same request, attempt
 * and id yield the same answer in any executor.
 */
import { type JsonObject, parseDuration } from '../../../protocol/common.ts'
import { toolName } from '../../../protocol/naming.ts'
import type { ShownTool } from '../../../protocol/sessions/turns/tools.ts'
import { ExecutorFault, faultOfStatus } from '../faults.ts'
import type { Counts, Delta, GeneratedMessage, ModelRequest } from '../speech.ts'
import { type Facts, factsOf, type Result } from './conversation.ts'
import type { Rule, Script, When } from './script.ts'
import { fill, fillAll, newFillBudget, scopeOf, starsIn } from './template.ts'

/** The course of an attempt. Times are in milliseconds. */
export interface Play {
  /** Pause before the first chunk. */
  readonly delay: number
  /** Pause between two chunks. */
  readonly pace: number
  readonly chunks: readonly Delta[]
  /**
   * The failure of the attempt. If it is a broken connection, half of the chunks are shown before
   * it. Otherwise, none are shown.
   */
  readonly fault?: ExecutorFault
  readonly message: GeneratedMessage
}
/** Default number of characters of a chunk. */
const CHUNK_LENGTH = 16
const millis = (text: string | undefined): number =>
  text === undefined ? 0 : (parseDuration(text) ?? 0)

/**
 * Computes the course of one attempt at a request.
 * @param attempt from 1. A failure with `times` occurs in the first `times` attempts.
 * @param id id of the generation, which makes the ids of its calls unique.
 * @throws ExecutorFault `script_invalid` when the filled texts are too long.
 */
export function play(script: Script, request: ModelRequest, attempt: number, id: string): Play {
  const facts = factsOf(request.messages)
  const [rule, stars] = choose(script, facts)
  const scope = scopeOf(facts, stars)
  const budget = newFillBudget()
  const [thinking, said] = [rule.think, rule.say].map((text) =>
    text === undefined ? '' : fill(text, scope, budget),
  )
  const uses = callsOf(rule).map(([name, args], index) => ({
    type: 'tool_use',
    id: `call_${id}_${index + 1}`,
    ...toolUse(request.tools ?? [], name, fillAll(args ?? {}, scope, budget) as JsonObject),
  }))
  const content: JsonObject[] = [
    ...(thinking ? [{ type: 'thinking', thinking }] : []),
    ...(said ? [{ type: 'text', text: said }] : []),
    ...uses,
  ]
  const size = rule.chunk ?? CHUNK_LENGTH
  const chunks: Delta[] = [
    ...cut(thinking ?? '', size).map((chunk): Delta => ({ type: 'thinking', thinking: chunk })),
    ...cut(said ?? '', size).map((text): Delta => ({ text })),
  ]
  const fault = faultOf(rule, attempt)
  return {
    delay: millis(rule.delay),
    pace: millis(rule.pace),
    chunks:
      fault?.is === 'provider_unreachable'
        ? chunks.slice(0, Math.ceil(chunks.length / 2))
        : fault
          ? []
          : chunks,
    ...(fault && { fault }),
    message: {
      id: `scripted_${facts.turn}_${facts.step}`,
      model: request.model,
      content,
      stop_reason: rule.stop ?? (uses.length > 0 ? 'tool_use' : 'end_turn'),
      usage: usageOf(rule, request, content),
    },
  }
}

/**
 * Returns the first rule that matches, with the texts that its stars matched. If no rule matches,
 * returns a rule whose answer says so, because an empty answer would be hard to diagnose.
 */
function choose(script: Script, facts: Facts): readonly [Rule, readonly string[]] {
  for (const rule of script) {
    const stars = fits(
      typeof rule.when === 'string' ? { text: rule.when } : (rule.when ?? {}),
      facts,
    )
    if (stars) return [rule, stars]
  }
  return [{ say: `No rule of the script matches: turn ${facts.turn}, step ${facts.step}.` }, []]
}
function fits(
  { text, turn, step, after, result, error }: When,
  facts: Facts,
): readonly string[] | undefined {
  if ((turn ?? facts.turn) !== facts.turn || (step ?? facts.step) !== facts.step) return undefined
  const stars = text === undefined ? [] : starsIn(text, facts.text)
  if (!stars) return undefined
  if (after === undefined && result === undefined && error === undefined) return stars
  const one = facts.results.find(
    (found) =>
      (after === undefined || isOf(found, after)) &&
      (error ?? found.error) === found.error &&
      (result === undefined || starsIn(result, found.text) !== undefined),
  )
  return one && [...stars, ...(result === undefined ? [] : (starsIn(result, one.text) ?? []))]
}
/**
 * Returns whether a result is from this tool, in any spelling of its name that a model can receive.
 */
const isOf = ({ tool, command }: Result, name: string): boolean =>
  name === '*' ||
  tool === name ||
  tool === toolName(name) ||
  (command !== undefined && `${tool}.${command}` === name)

const callsOf = ({ call }: Rule) =>
  call === undefined
    ? []
    : (Array.isArray(call) ? call : [call]).flatMap((one) => Object.entries(one))
/**
 * Returns a call to a tool under the name that the model was shown. If the model was shown only the
 * router of the tool group, the call is to the router.
 */
function toolUse(
  tools: readonly ShownTool[],
  name: string,
  input: JsonObject,
): { readonly name: string; readonly input: JsonObject } {
  if (tools.some((tool) => tool.name === name)) return { name, input }
  if (name === 'ask')
    return { name: tools.find((tool) => tool.name.endsWith('_ask_person'))?.name ?? name, input }
  if (name === 'submit')
    return { name: tools.find((tool) => tool.name.endsWith('_submit_output'))?.name ?? name, input }
  if (tools.some((tool) => tool.name === toolName(name))) return { name: toolName(name), input }
  const dot = name.indexOf('.')
  return dot > 0 && tools.some((tool) => tool.name === toolName(name.slice(0, dot)))
    ? { name: toolName(name.slice(0, dot)), input: { command: name.slice(dot + 1), args: input } }
    : { name: toolName(name), input }
}

function cut(text: string, size: number): string[] {
  const characters = [...text]
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  )
}

function faultOf({ fail }: Rule, attempt: number): ExecutorFault | undefined {
  if (fail === undefined) return undefined
  const { as, times, retry_after } =
    typeof fail === 'object' ? fail : { as: fail, times: undefined, retry_after: undefined }
  if (times !== undefined && attempt > times) return undefined
  if (typeof as === 'number')
    return new ExecutorFault(faultOfStatus(as), `The script returned ${as}.`, millis(retry_after))
  if (as === 'timeout')
    return new ExecutorFault('provider_timeout', 'The script sent nothing.', millis(retry_after))
  return as === 'disconnect'
    ? new ExecutorFault(
        'provider_unreachable',
        'The script closed the connection.',
        millis(retry_after),
      )
    : new ExecutorFault(
        'invalid_response',
        'The script returned an invalid response.',
        millis(retry_after),
      )
}

/** Returns the token counts of the rule. The default is one token per four characters. */
const usageOf = (
  { usage }: Rule,
  { system = [], messages }: ModelRequest,
  content: readonly JsonObject[],
): Counts => ({
  input_tokens:
    usage?.input_tokens ??
    Math.ceil(
      (JSON.stringify(messages).length + system.reduce((sum, { text }) => sum + text.length, 0)) /
        4,
    ),
  output_tokens: usage?.output_tokens ?? Math.ceil(JSON.stringify(content).length / 4),
})
