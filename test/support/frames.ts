/** Checks that the frames of an event stream are described in the AsyncAPI document. */

import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { api, type RowName } from '../../protocol/api.ts'
import type { Row } from '../../protocol/contract.ts'
import { type Frames, streamFrames } from '../../protocol/openapi/frames.ts'

const validators = new Map<TSchema, ReturnType<typeof Compile>>()

/**
 * Returns how a frame deviates from the description of its stream; undefined if it does not.
 * @param event the event name of the frame; by default `message`.
 */
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
