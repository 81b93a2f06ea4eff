/**
 * A segment: an assistant row with tool calls. It stays open until all of its calls are settled.
 * Then the row and a second row with all results become final in one commit. A settled call is
 * never executed again.
 */
import { isExempt } from '../../../protocol/agents/manifest.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { canonicalJson } from '../../../protocol/rules/canonical-json.ts'
import { valueFaults } from '../../../protocol/rules/json-schema/validate.ts'
import type { Call } from '../../../protocol/sessions/bookkeeping.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type {
  Block,
  ToolResultBlock,
  ToolUseBlock,
} from '../../../protocol/sessions/turns/blocks.ts'
import type { GrantedTool } from '../../../protocol/sessions/turns/definition.ts'
import { allows, operationOf, type Reserved } from '../../../protocol/sessions/turns/tools.ts'
import { hashOf } from '../../../protocol/subjects.ts'
import { type Draft, emit, noteCall, noteTurn, patchCall, turnOf, write } from '../draft.ts'
import { writeContext } from '../history/context.ts'
import { recall } from '../history/remembered.ts'
import { beginningOf } from '../history/shorten.ts'
import type { Turn } from '../state.ts'
import { callOf, rejectFaultyCall, settleCall, waitOf } from './call-results.ts'
import { callsOf } from './calls.ts'
import { enqueueJob, queueOf, type Settled } from './jobs.ts'
import { failureStep, type TurnStep } from './next.ts'
import { askApproval, askPerson } from './questions.ts'

const DEFAULT_RESULT = { content: '' } as const
/** Number of characters above which a call's signature is shortened. */
const MAX_SIGNATURE_LENGTH = 200
/** Opens a segment for an answer that uses tools. */
export function openSegment(draft: Draft, id: string, answer: readonly Block[]): TurnStep {
  const { generation } = (turnOf(draft, id) as Turn).work
  if (!generation) return undefined
  const content = unique(draft, answer)
  content.forEach((block, content_index) => {
    emit(draft, {
      type: 'message.block',
      session_id: draft.state.record.id,
      message_id: generation.message_id,
      content_index,
      block: block.type === 'tool_use' ? { ...block, status: 'pending' } : block,
    })
  })
  noteTurn(draft, id, { generation: null })
  const uses = content.flatMap((block, index) =>
    block.type === 'tool_use' ? [{ block, index }] : [],
  )
  for (const { block, index } of uses)
    noteCall(draft, id, block.id, { id: block.id, index, state: 'ready' })
  if (uses.length > limits.calls)
    return failureStep(
      'too_many_calls',
      `One answer called ${uses.length} tools; at most ${limits.calls} are executed.`,
    )
  for (const { block } of uses) {
    const stalled = begin(draft, id, block)
    if (stalled) return stalled
  }
  return 'advance'
}

/**
 * Makes ids of tool uses unique among open segments and the remembered ids of the session. A
 * repeated id gets a suffix.
 */
function unique(draft: Draft, content: readonly Block[]): Block[] {
  const known = callsOf(draft.state)
  const used = new Set(
    Object.values(draft.state.turns).flatMap(({ work }) => Object.keys(work.segment?.calls ?? {})),
  )
  return content.map((block) => {
    if (block.type !== 'tool_use') return block
    let { id } = block
    for (let n = 2; used.has(id) || recall(known, id); n++)
      id = `${block.id}_${draft.state.sequence + 1}_${n}`
    used.add(id)
    return { ...block, id }
  })
}

/**
 * Resolves the operation that a call requests. Depending on the operation, it settles the call,
 * asks people for an answer or an approval, or leaves the call ready.
 * @returns the `TurnStep` that ends the turn if the turn repeats the call too often.
 */
function begin(draft: Draft, id: string, { id: call, name, input }: ToolUseBlock): TurnStep {
  const signature = signatureOf(name, input)
  emit(draft, { type: 'call.counted', id, signature })
  const { definition, output_schema, repeats, skills } = (turnOf(draft, id) as Turn).work
  const meaning = operationOf(definition, draft.brand, output_schema, name, input)
  const times = repeats[signature] ?? 0
  const limit = definition.max_repeats ?? limits.repeats
  if (limit > 0 && times > limit) {
    const called = meaning.kind === 'action' ? meaning.tool.name : name
    const error_message = `${called} was called more than ${limit} times with the same arguments.`
    return {
      end: {
        status: 'failed',
        error_type: 'progress_stalled',
        error_message,
        stalled: { tool: called, duplicate_calls: times, limit },
      },
    }
  }
  if (meaning.kind === 'fault')
    settleCall(draft, id, call, { status: 'error', content: meaning.text })
  else if (meaning.kind === 'help')
    settleCall(draft, id, call, { status: 'ok', content: meaning.text })
  else if (meaning.kind === 'action') act(draft, id, call, meaning.tool, meaning.input, skills)
  else if (meaning.which === 'ask') askPerson(draft, id, call, input)
  else own(draft, id, call, meaning.which, input)
  return undefined
}

/**
 * Returns the signature of a call, which consists of its name and arguments. A long signature is
 * replaced by its beginning, its length and a hash.
 */
function signatureOf(name: string, input: JsonObject): string {
  const text = `${name} ${canonicalJson(input)}`
  return text.length <= MAX_SIGNATURE_LENGTH
    ? text
    : `${text.slice(0, MAX_SIGNATURE_LENGTH)} ${text.length} ${hashOf(text)}`
}

/** Executes a tool that the session itself implements. */
function own(
  draft: Draft,
  id: string,
  call: string,
  which: Exclude<Reserved, 'ask'>,
  input: JsonObject,
): void {
  const { definition, output_schema, skills = [] } = (turnOf(draft, id) as Turn).work
  if (which === 'submit_output') {
    const faults = valueFaults(output_schema ?? {}, input, '', 'the schema of the output')
    if (rejectFaultyCall(draft, id, call, faults, 'the output does not match its schema')) return
    noteTurn(draft, id, { output: input, output_source: 'tool' })
    return void settleCall(draft, id, call, { status: 'ok', content: 'The output was accepted.' })
  }
  const skill = definition.skills.find(({ name }) => name === input['name'])
  if (!skill)
    return void settleCall(draft, id, call, {
      status: 'error',
      content: `There is no skill ${JSON.stringify(input['name'] ?? null)}.`,
    })
  noteTurn(draft, id, { skills: [...new Set([...skills, skill.name])] })
  settleCall(draft, id, call, { status: 'ok', content: skill.instructions })
}

/**
 * Prepares an action: checks it against its schema and the active skills, and requests approval if
 * it is destructive.
 */
function act(
  draft: Draft,
  id: string,
  call: string,
  tool: GrantedTool,
  input: JsonObject,
  active: readonly string[] | undefined,
): void {
  const { definition } = (turnOf(draft, id) as Turn).work
  const { index } = callOf(draft, id, call) as Call
  const action = { name: tool.name, input }
  noteCall(draft, id, call, { action })
  patchCall(draft, id, index, { resolved_action: action })
  const restricting = definition.skills.filter(
    ({ name, allowed_tools }) => active?.includes(name) && allowed_tools.length > 0,
  )
  if (
    restricting.length > 0 &&
    !isExempt(tool.name, draft.brand) &&
    !restricting.some(({ allowed_tools }) => allows(allowed_tools, tool, draft.brand))
  ) {
    return void settleCall(draft, id, call, {
      status: 'error',
      content: `The skill ${restricting.map(({ name }) => name).join(', ')} does not allow ${tool.name}.`,
    })
  }
  const faults = tool.input_schema
    ? valueFaults(tool.input_schema, input, '', `the input_schema of ${tool.name}`)
    : []
  if (rejectFaultyCall(draft, id, call, faults)) return
  if (tool.annotations.destructive) askApproval(draft, id, call, tool, input)
}

/**
 * Advances the calls of a running turn: dispatches ready calls, suspends the turn when only
 * questions are open, and commits the rows when all calls are settled.
 */
export function advanceSegment(draft: Draft, id: string): TurnStep {
  const calls = () => Object.values(turnOf(draft, id)?.work.segment?.calls ?? {})
  for (const call of calls()) if (call.state === 'ready') dispatch(draft, id, call)
  const states = new Set(calls().map(({ state }) => state))
  if (states.has('job') || states.has('asking')) return undefined
  const waiting = calls().find(({ state }) => state === 'waiting')
  return waiting ? { wait: waitOf(waiting) } : commit(draft, id)
}
function dispatch(draft: Draft, id: string, { id: call, index, action }: Call): void {
  const turn = turnOf(draft, id) as Turn
  const tool = turn.work.definition.tools.find(({ name }) => name === action?.name)
  if (!action || !tool)
    return void settleCall(draft, id, call, {
      status: 'error',
      content: 'The tool no longer exists.',
    })
  const job_id = draft.cause.mint('job')
  const queue = tool.queue ?? queueOf(turn.work.definition)
  noteCall(draft, id, call, { state: 'job', job_id, queue })
  patchCall(draft, id, index, { status: 'running' })
  // Built-in tools, and tools that are declared safe to repeat, get several attempts. All other
  // tools get one attempt.
  const attempts =
    tool.annotations.idempotent || tool.annotations.read_only || tool.kind === 'builtin'
      ? limits.attempts
      : 1
  enqueueJob(
    draft,
    queue,
    {
      id: job_id,
      kind: 'action_execution',
      executor_kind: tool.kind === 'worker' ? 'customer_worker' : 'server_worker',
      action_name: tool.name,
      agent_turn_id: id,
      tool_call_id: call,
      ...(tool.environment_id !== undefined && { environment_id: tool.environment_id }),
      max_attempts: attempts,
      max_losses: attempts,
    },
    turn,
  )
}

/** Settles a call with the outcome of its job. */
export function settleJobCall(
  draft: Draft,
  id: string,
  call: string,
  { outcome, result, context, error_type, error_message }: Settled,
): void {
  if (outcome === 'completed' && context) noteCall(draft, id, call, { context })
  const failed = {
    error_type: error_type ?? outcome,
    error_message:
      error_message ?? `The action ${outcome === 'failed' ? 'failed' : 'was cancelled'}.`,
  }
  settleCall(
    draft,
    id,
    call,
    outcome === 'completed'
      ? { status: 'ok', content: JSON.stringify(result ?? {}) }
      : {
          status: outcome === 'cancelled' ? 'cancelled' : 'error',
          content: JSON.stringify(failed),
        },
  )
}

/**
 * Fits results into one row: if their total length exceeds the limit, truncates each of them to at
 * most an equal share.
 */
function fitting(results: readonly ToolResultBlock[]): readonly ToolResultBlock[] {
  const [ids, texts] = results.reduce(
    ([id, text], { tool_use_id, content = '' }) => [id + tool_use_id.length, text + content.length],
    [0, 0],
  )
  if (ids + texts <= limits.results) return results
  const share = Math.floor((limits.results - ids) / results.length)
  return results.map((result) =>
    typeof result.content === 'string'
      ? { ...result, content: beginningOf(result.content, share) }
      : result,
  )
}

/** Commits the row and the results of its calls. Called only once all calls are settled. */
function commit(draft: Draft, id: string): TurnStep {
  const { segment, next_index, output } = (turnOf(draft, id) as Turn).work
  if (!segment) return undefined
  const calls = Object.values(segment.calls).sort((a, b) => a.index - b.index)
  const results = fitting(
    calls.map(
      ({ id: call, result }): ToolResultBlock =>
        result ?? { type: 'tool_result', tool_use_id: call, ...DEFAULT_RESULT, is_error: true },
    ),
  )
  const content = segment.content.map((block): Block => {
    if (block.type !== 'tool_use') return block
    const { progress: _, ...frozen } = block
    return frozen
  })
  write(draft, {
    id: segment.message_id,
    turn: { id, index: segment.turn_index },
    role: 'assistant',
    content,
    metadata: { response_message_index: segment.turn_index },
    created_at: segment.created_at,
  })
  write(draft, { turn: { id, index: next_index }, role: 'user', content: results })
  noteTurn(draft, id, { next_index: next_index + 1 })
  const contexts = calls.flatMap(({ context = [] }) => context)
  if (contexts.length > 0) writeContext(draft, id, contexts)
  return output ? { end: { status: 'completed' } } : 'advance'
}
