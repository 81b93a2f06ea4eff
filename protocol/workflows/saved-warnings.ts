/**
 * Warnings about parts of a saved definition that cannot have any effect. The definition is stored
 * unchanged.
 */
import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import { isPublishable } from '../events/types.ts'

export const SavedWarning = Type.Object({
  code: Type.Enum(['event_type_not_published']),
  field: Type.String({ description: 'Path of the field in the definition' }),
  message: Type.String({ description: 'Explanation for people, in one sentence' }),
})
type SavedWarning = Static<typeof SavedWarning>
export const SavedWarnings = Type.Array(SavedWarning)

interface Step {
  readonly kind?: unknown
  readonly config?: Readonly<Record<string, unknown>>
}
interface Definition {
  readonly triggers?: readonly Step[]
  readonly steps?: readonly Step[]
  readonly spec?: { readonly steps?: readonly Step[] }
}

/**
 * Returns the warnings about the triggers and waits of a loop or a workflow, including waits in
 * branches and items.
 */
function warningsOf({ triggers, steps, spec }: Definition): SavedWarning[] {
  return [
    ...(triggers ?? []).flatMap((trigger, at) =>
      trigger.kind === 'event' ? idle(trigger, `triggers[${at}]`, 'does not fire') : [],
    ),
    ...waits(steps, 'steps'),
    ...waits(spec?.steps, 'spec.steps'),
  ]
}

/** The additions of saved workflows and loops. */
export const savedAdditions = additions({ warnings: { value: warningsOf } })

function waits(steps: unknown, field: string): SavedWarning[] {
  return !Array.isArray(steps)
    ? []
    : (steps as readonly Step[]).flatMap((step, at) => {
        const place = `${field}[${at}]`
        if (step.kind === 'wait_for_event') return idle(step, place, 'waits until its timeout')
        const { branches, steps: inner } = step.config ?? {}
        return [
          ...(Array.isArray(branches)
            ? (branches as readonly { readonly steps?: unknown }[]).flatMap((branch, number) =>
                waits(branch.steps, `${place}.config.branches[${number}].steps`),
              )
            : []),
          ...waits(inner, `${place}.config.steps`),
        ]
      })
}

function idle({ config }: Step, place: string, effect: string): SavedWarning[] {
  const event_type = config?.['event_type']
  if (typeof event_type !== 'string' || isPublishable(event_type)) return []
  return [
    {
      code: 'event_type_not_published',
      field: `${place}.config.event_type`,
      message: `Nothing publishes ${event_type} in this version, so this ${effect}.`,
    },
  ]
}
