/** Parses messages from the client of a terminal. */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { getOwn } from '../../protocol/lookup.ts'
import { type FromPerson, fromPerson } from '../../protocol/workers/terminals.ts'

const checks = Object.fromEntries(
  Object.entries(fromPerson).map(([type, schema]) => [type, Compile(schema as TSchema)]),
)

/** Returns the message, or undefined when the text is not a valid message. */
export function readMessage(text: string): FromPerson | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const type = (value as { readonly type?: unknown } | null)?.type
  const check = typeof type === 'string' ? getOwn(checks, type) : undefined
  return check?.Check(value) ? (value as FromPerson) : undefined
}
