/**
 * Warnings about parts of a saved definition or webhook that cannot have any effect. The record is
 * stored unchanged.
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
  return typeof event_type === 'string'
    ? unpublished(event_type, `${place}.config.event_type`, `this ${effect}`)
    : []
}

function unpublished(event_type: string, field: string, effect: string): SavedWarning[] {
  if (isPublishable(event_type)) return []
  return [
    {
      code: 'event_type_not_published',
      field,
      message: `Nothing publishes ${event_type} in this version, so ${effect}.`,
    },
  ]
}

/** Returns the warnings about the event types to which a webhook listens. */
const webhookWarningsOf = ({ events = [] }: { readonly events?: readonly string[] }) =>
  events.flatMap((event_type, at) =>
    unpublished(event_type, `events[${at}]`, 'the webhook receives nothing for it'),
  )

/** The additions of webhooks. */
export const webhookAdditions = additions({ warnings: { value: webhookWarningsOf } })
