/** Commands that an agent sends through a built-in tool. */
import type { Address } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { Called, Service } from './builtin.ts'

/** Sends a command as the agent; a repeated job repeats the command and changes nothing. */
export async function act(
  { world }: Service,
  { job, call, agent }: Called,
  to: Address,
  name: string,
  input: object,
): Promise<{ readonly reply: unknown } | Refusal> {
  const outcome = await world.command({
    ...to,
    command_id: `tool:${job.id}`,
    name,
    input,
    origin: {
      at: world.now(),
      principal: { type: 'agent', id: call.actor.principal_id, name: agent },
      credential: { type: 'internal', id: job.session_id ?? job.id, name: agent },
    },
  })
  return isRefusal(outcome) ? outcome : { reply: outcome.reply }
}
