/**
 * Checks the conditions of conditional commands (`protocol/conditional.ts`), for all kinds of
 * actors.
 */
import { entityTagOf } from '../protocol/conditional.ts'
import type { Command } from '../protocol/entry.ts'
import { type Refusal, refuse } from '../protocol/errors.ts'
import { getOwn } from '../protocol/lookup.ts'
import type { AnyActor } from './actor.ts'

/**
 * Refuses a command if the record does not meet the command's condition. A record that does not
 * exist meets no condition.
 * @param state the state before the command.
 * @throws Error if the actor does not define which record the command changes.
 */
export function unmetCondition(
  { kind, records = {} }: Pick<AnyActor, 'kind' | 'records'>,
  state: unknown,
  { name, input, if_match }: Pick<Command, 'name' | 'input' | 'if_match'>,
): Refusal | undefined {
  if (!if_match) return undefined
  const read = getOwn(records, name)
  if (!read) throw new Error(`${kind} has no record for the condition of ${name}`)
  const tag = entityTagOf(name, read(state as never, input as never))
  return tag !== undefined && if_match.includes(tag) ? undefined : refuse('precondition_failed')
}
