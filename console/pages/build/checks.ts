/**
 * Checks definitions in the same way as the service, and provides the schemas for completion in the
 * editor.
 */

import { Closed } from '../../../protocol/common.ts'
import { checkLoop } from '../../../protocol/loops/check.ts'
import { type Authored, authoring } from '../../../protocol/loops/schema.ts'
import { explain } from '../../../protocol/rules/schema-faults/explain.ts'
import { checkSpec, Spec } from '../../../protocol/workflows/spec.ts'
import type { ValueCheck } from '../../editor/faults.ts'
import type { Schema } from '../../editor/suggestions.ts'

/** The schema of workflow definitions. */
export const workflowSchema = Spec as unknown as Schema
/** Returns the faults of a workflow definition. */
export const checkWorkflow: ValueCheck = (value) => {
  const faults = explain(Spec, value)
  return faults.length > 0 ? faults : checkSpec(value as Spec, '')
}

const LoopDefinition = Closed(authoring)
/** The schema of loop definitions. */
export const loopSchema = LoopDefinition as unknown as Schema
/** Returns a check for loop definitions; `agent_id` is the agent of the loop. */
export const checkLoopWith =
  (agent_id: string | undefined): ValueCheck =>
  (value) => {
    const faults = explain(LoopDefinition, value)
    if (faults.length > 0) return faults
    const authored = value as Authored
    return checkLoop({ ...authored, ...(agent_id !== undefined && { agent_id }) }).map((fault) =>
      fault.field === 'body' ? { ...fault, field: '' } : fault,
    )
  }
/** The member names of loop definitions. */
export const loopMembers = Object.keys(authoring) as readonly (keyof typeof authoring)[]
