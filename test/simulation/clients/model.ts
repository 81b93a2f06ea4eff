/**
 * Generates the results of jobs in the simulation. A model answers with text or tool calls. A
 * separate random stream for each attempt determines the answer, so a repeated report has the same
 * content.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { GrantedTool, TurnDefinition } from '../../../protocol/sessions/turns/definition.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { type Dice, fork } from '../faults/dice.ts'

const tools: readonly GrantedTool[] = [
  { name: 'act', kind: 'worker', annotations: {} },
  { name: 'read', kind: 'worker', annotations: { read_only: true }, queue: 'side' },
  { name: 'rm', kind: 'worker', annotations: { destructive: true } },
]
const ASK = 'sim_ask_person'

/** Returns the definition of a turn, sometimes with a short timeout or with early compaction. */
export const definitionOf = (dice: Dice): TurnDefinition => ({
  agent_id: 'agt_1',
  agent_name: 'Bot',
  scope: { org_id: 'org_1', project_id: 'prj_1' },
  instructions: '',
  route: { mode: 'worker', provider: 'local', model: 'm' },
  tool_presentation: 'flat',
  tools,
  skills: [],
  timeout_seconds: dice.chance(0.15) ? 1 + dice.below(6) : 600,
  compaction: dice.chance(0.3)
    ? { strategy: 'auto', threshold_tokens: 80 }
    : { strategy: 'disabled', threshold_tokens: 80 },
})

function use(dice: Dice, index: number): JsonObject {
  const [id, what] = [`c${index}`, dice.unit()]
  if (what < 0.12)
    return {
      type: 'tool_use',
      id,
      name: ASK,
      input: { title: 'Really?', kind: 'request_approval' },
    }
  return {
    type: 'tool_use',
    id,
    name: what < 0.65 ? 'act' : what < 0.85 ? 'read' : what < 0.95 ? 'rm' : 'unknown',
    input: { n: dice.below(1000) },
  }
}
export function resultOf(
  seed: number,
  { id, kind, agent_turn_id, claim_attempt, lease_token }: ClaimedJob,
): JsonObject {
  if (kind !== 'llm_generation') return { by: lease_token }
  const dice = fork(seed, `model/${id}/${claim_attempt}`)
  const content =
    agent_turn_id === undefined || dice.chance(0.5)
      ? [{ type: 'text', text: `said under ${lease_token}` }]
      : Array.from({ length: 1 + dice.below(2) }, (_, index) => use(dice, index))
  return {
    llm_response: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }
}
