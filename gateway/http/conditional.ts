/** The headers of conditional updates: `ETag` in responses, and `If-Match` in requests. */
import { entityTagOf, isConditional, tagsIn } from '../../protocol/conditional.ts'
import { type Refusal, refuseFields } from '../../protocol/errors.ts'
import { type Call, operationOf } from '../call.ts'
import type { Answer } from './respond.ts'

/** The names of the additional request headers of a conditional command. */
export const CONDITION_HEADERS = ['if-match'] as const

/**
 * Returns the header with the entity tag of a record; undefined if the row of the call has no tags.
 */
export function tagHeader(
  call: Pick<Call, 'name' | 'row'>,
  record: unknown,
): Pick<Answer, 'headers'> | undefined {
  const tag = entityTagOf(operationOf(call), record)
  return tag === undefined ? undefined : { headers: { ETag: tag } }
}

/**
 * Returns the entity tags in the condition of a call. The record must have one of these tags.
 * Returns undefined if the call has no condition or accepts every record.
 */
export function conditionOf(call: Call): readonly string[] | undefined | Refusal {
  if (call.part || !isConditional(call.row)) return undefined
  const value = call.incoming.further('if-match')
  if (value === undefined) return undefined
  const tags = tagsIn(value)
  if (tags === undefined)
    return refuseFields({
      field: 'If-Match',
      message: 'must be a list of entity tags in quotation marks, or *',
      actual: value,
    })
  return tags === '*' ? undefined : tags
}
