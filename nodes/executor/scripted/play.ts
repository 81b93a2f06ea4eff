/**
 * What a script says to a request. Pure: the same request, attempt and id give the same play, also after the executor died in the
 * middle of the last one.
 */
import { parseDuration, type JsonObject } from '../../../protocol/common.ts'
import type { ShownTool } from '../../../protocol/sessions/turns/tools.ts'
import { ExecutorFault, faultOfStatus } from '../faults.ts'
import type { Counts, Delta, ModelRequest, Spoken } from '../speech.ts'
import { factsOf, type Facts, type Result } from './conversation.ts'
import type { Rule, Script, When } from './script.ts'
import { fill, fillAll, scopeOf, starsIn } from './template.ts'

/** An attempt as it is played. Times are milliseconds. */
export interface Play {
  /** Before anything is shown, and between two pieces. */
  readonly delay: number
  readonly pace: number
  readonly pieces: readonly Delta[]
  /** Half of the pieces are shown before a connection breaks. */
  readonly fault?: ExecutorFault
  readonly message: Spoken
}
/** Characters of a piece. */
const PIECE = 16
const millis = (text: string | undefined): number =>
  text === undefined ? 0 : (parseDuration(text) ?? 0)

/** Play the request. @param attempt from 1: a failure that is to happen some times happens in the first ones. @param id of the generation: it makes the ids of its calls unlike all others. */
export function play(script: Script, request: ModelRequest, attempt: number, id: string): Play {
  const facts = factsOf(request.messages)
  const [rule, stars] = choose(script, facts)
  const scope = scopeOf(facts, stars)
  const [thinking, said] = [rule.think, rule.say].map((text) =>
    text === undefined ? '' : fill(text, scope),
  )
  const uses = callsOf(rule).map(([name, args], index) => ({
    type: 'tool_use',
    id: `call_${id}_${index + 1}`,
    ...toolUse(request.tools ?? [], name, fillAll(args ?? {}, scope) as JsonObject),
  }))
  const content: JsonObject[] = [
    ...(thinking ? [{ type: 'thinking', thinking }] : []),
    ...(said ? [{ type: 'text', text: said }] : []),
    ...uses,
  ]
  const size = rule.chunk ?? PIECE
  const pieces: Delta[] = [
    ...cut(thinking ?? '', size).map((piece): Delta => ({ type: 'thinking', thinking: piece })),
    ...cut(said ?? '', size).map((text): Delta => ({ text })),
  ]
  const fault = faultOf(rule, attempt)
  return {
    delay: millis(rule.delay),
    pace: millis(rule.pace),
    pieces:
      fault?.is === 'provider_unreachable'
        ? pieces.slice(0, Math.ceil(pieces.length / 2))
        : fault
          ? []
          : pieces,
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

/** The first rule that fits, with what its stars stood for. Silence otherwise is no answer that anybody could explain. */
function choose(script: Script, facts: Facts): readonly [Rule, readonly string[]] {
  for (const rule of script) {
    const stars = fits(
      typeof rule.when === 'string' ? { text: rule.when } : (rule.when ?? {}),
      facts,
    )
    if (stars) return [rule, stars]
  }
  return [{ say: `No rule of the script fits: turn ${facts.turn}, step ${facts.step}.` }, []]
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
/** Whether a result is one of this tool, however its name was spelled to the model. */
const isOf = ({ tool, command }: Result, name: string): boolean =>
  name === '*' ||
  tool === name ||
  tool === mangled(name) ||
  (command !== undefined && `${tool}.${command}` === name)
const mangled = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)

const callsOf = ({ call }: Rule) =>
  call === undefined
    ? []
    : (Array.isArray(call) ? call : [call]).flatMap((one) => Object.entries(one))
/** A call under the name that the model was shown: the tool itself, or the router of its group. */
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
  if (tools.some((tool) => tool.name === mangled(name))) return { name: mangled(name), input }
  const dot = name.indexOf('.')
  return dot > 0 && tools.some((tool) => tool.name === mangled(name.slice(0, dot)))
    ? { name: mangled(name.slice(0, dot)), input: { command: name.slice(dot + 1), args: input } }
    : { name: mangled(name), input }
}

/** Whole characters, `size` at a time. */
function cut(text: string, size: number): string[] {
  const letters = [...text]
  return Array.from({ length: Math.ceil(letters.length / size) }, (_, index) =>
    letters.slice(index * size, (index + 1) * size).join(''),
  )
}

function faultOf({ fail }: Rule, attempt: number): ExecutorFault | undefined {
  if (fail === undefined) return undefined
  const { as, times, retry_after } =
    typeof fail === 'object' ? fail : { as: fail, times: undefined, retry_after: undefined }
  if (times !== undefined && attempt > times) return undefined
  if (typeof as === 'number')
    return new ExecutorFault(faultOfStatus(as), `The script answered ${as}.`, millis(retry_after))
  if (as === 'timeout')
    return new ExecutorFault('provider_timeout', 'The script was silent.', millis(retry_after))
  return as === 'disconnect'
    ? new ExecutorFault(
        'provider_unreachable',
        'The script broke the connection.',
        millis(retry_after),
      )
    : new ExecutorFault(
        'invalid_response',
        'The script wrote what nobody understands.',
        millis(retry_after),
      )
}

/** Four characters count as a token. */
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
