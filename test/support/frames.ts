/** Whether a frame of an event stream is one that the AsyncAPI document describes. */
import { Compile } from 'typebox/compile'
import type { TSchema } from 'typebox'
import { api, type RowName } from '../../protocol/api.ts'
import type { Row } from '../../protocol/contract.ts'
import { streamFrames, type Frames } from '../../protocol/openapi/frames.ts'

const validators = new Map<TSchema, ReturnType<typeof Compile>>()

/** What of a frame its stream does not describe, or nothing. @param event its event name. */
export function undescribed(
  name: RowName,
  event: string | undefined,
  data: unknown,
): string | undefined {
  const row: Row = api[name]
  const known: Readonly<Record<string, Frames | undefined>> = streamFrames
  const schema = known[row.shape.as ?? name]?.[event ?? 'message']
  if (!schema) return `no frame ${event} is described`
  let validator = validators.get(schema)
  if (!validator) validators.set(schema, (validator = Compile(schema)))
  return validator.Check(data) ? undefined : JSON.stringify(validator.Errors(data).slice(0, 3))
}
