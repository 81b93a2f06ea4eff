/** The rules for an apply request that its schema cannot express. */
import type { FieldError } from '../errors.ts'
import { type ApplyRequest, blueprintLimits } from './schema.ts'

/** Returns the faults of an apply request. */
export function checkApply({ resources }: ApplyRequest): FieldError[] {
  const count = Object.values(resources).reduce((sum, list) => sum + (list?.length ?? 0), 0)
  return [
    ...(count > blueprintLimits.resources
      ? [
          {
            field: 'resources',
            message: `has more than ${blueprintLimits.resources} resources; divide it into several blueprints`,
            actual: count,
          },
        ]
      : []),
    ...(resources.toolkits ?? []).flatMap(({ actions = [] }, index) =>
      actions.flatMap(({ selector, action_name }, at): FieldError[] =>
        (selector === undefined) === (action_name === undefined)
          ? [
              {
                field: `resources.toolkits[${index}].actions[${at}].selector`,
                message: 'give exactly one of selector and action_name',
              },
            ]
          : [],
      ),
    ),
  ]
}
