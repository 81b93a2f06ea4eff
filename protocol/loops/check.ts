/**
 * Validation of loops and their trigger settings beyond what the JSON Schema can express. Faults
 * have the exact path of the field.
 */
import type { FieldError } from '../errors.ts'
import { checkEventType } from '../events/types.ts'
import { isRepositoryName } from '../repositories/name.ts'
import { EVENT_ROOTS } from '../rules/expressions/scope.ts'
import { checkExpression } from '../rules/expressions/template.ts'
import { scheduleFault } from '../rules/schedule.ts'
import { checkDuration } from '../rules/workflow-check/bounds.ts'
import { checkSpec } from '../rules/workflow-check/check.ts'
import { checkOverridable } from '../rules/workflow-check/declared.ts'
import { below } from '../rules/workflow-check/path.ts'
import { isRef, preparationIds } from './repositories.ts'
import { type Authored, httpHandle, type Loop, specOf, type Trigger, triggerKey } from './schema.ts'

function checkTrigger(trigger: Trigger, path: string): FieldError[] {
  const config = below(path, 'config')
  if (trigger.kind === 'schedule') {
    const fault = scheduleFault(trigger.config)
    return fault
      ? [
          {
            field: below(config, fault.field),
            message: fault.message,
            actual: trigger.config[fault.field],
          },
        ]
      : checkDuration(trigger.config.interval, below(config, 'interval'))
  }
  if (trigger.kind !== 'event') return []
  const { event_type, condition } = trigger.config
  return [
    ...checkEventType(event_type, below(config, 'event_type'), 'trigger'),
    ...(condition === undefined
      ? []
      : checkExpression(condition, EVENT_ROOTS, below(config, 'condition'))),
  ]
}

function checkTriggers(triggers: readonly Trigger[]): FieldError[] {
  const keys = triggers.map(triggerKey)
  const handles = triggers.map(httpHandle)
  return triggers.flatMap((trigger, index) => {
    const at = below('triggers', index)
    const handle = handles[index]
    return [
      ...(keys.indexOf(keys[index] ?? '') < index
        ? [
            {
              field: below(at, 'key'),
              message: `is already the key of trigger ${keys.indexOf(keys[index] ?? '')}`,
              actual: trigger.key,
            },
          ]
        : []),
      ...(handle !== undefined && handles.indexOf(handle) < index
        ? [
            {
              field: below(below(at, 'config'), 'http_handle'),
              message: `is already that of trigger ${handles.indexOf(handle)}`,
              actual: handle,
            },
          ]
        : []),
      ...checkTrigger(trigger, at),
    ]
  })
}

function checkRepositories({ repositories = [], triggers = [] }: Authored): FieldError[] {
  return repositories.flatMap(({ source = 'static', full_name, ref }, index) => {
    const at = below('repositories', index)
    return [
      ...(source === 'static' && full_name === undefined
        ? [{ field: below(at, 'full_name'), message: 'is required' }]
        : []),
      ...(source === 'match' && !triggers.some(({ kind }) => kind === 'event')
        ? [{ field: below(at, 'source'), message: 'match requires a trigger of kind event' }]
        : []),
      ...(source === 'static' && full_name !== undefined && !isRepositoryName(full_name)
        ? [{ field: below(at, 'full_name'), message: 'must be owner/name', actual: full_name }]
        : []),
      ...(ref !== undefined && !isRef(ref)
        ? [
            {
              field: below(at, 'ref'),
              message: 'is not a branch, tag, reference or commit',
              actual: ref,
            },
          ]
        : []),
    ]
  })
}

/**
 * Returns the faults of values in `default_config` that do not have their declared types. Every
 * start that does not override such a value would be refused.
 */
export const checkDefaultConfig = ({
  config = {},
  default_config = {},
}: Pick<Authored, 'config'> & Pick<Loop, 'default_config'>): FieldError[] =>
  checkOverridable(config, default_config, 'default_config')

/** Returns the faults of the definition of a loop, at most 50. */
export const checkLoop = (authored: Authored & { readonly agent_id?: string }): FieldError[] =>
  [
    ...checkSpec(specOf(authored), '', 'event', {
      prepares: preparationIds(authored.repositories?.length ?? 0),
      ...(authored.agent_id !== undefined && { agent_id: authored.agent_id }),
    }).map((fault) => (fault.field === '' ? { ...fault, field: 'body' } : fault)),
    ...checkTriggers(authored.triggers ?? []),
    ...checkRepositories(authored),
  ].slice(0, 50)
