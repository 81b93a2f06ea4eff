/**
 * Checks of blueprints that need no service: the schema of each resource, and the rules of the row
 * that creates it. Both are the code of the service, in `protocol/`. All faults are reported.
 */

import { api } from '../../../protocol/api.ts'
import { type ResourceTypeName, resourceSchemas } from '../../../protocol/blueprints/resources.ts'
import { blueprintLimits } from '../../../protocol/blueprints/schema.ts'
import { stepsOf } from '../../../protocol/blueprints/steps.ts'
import { memberOf, resourceFacts } from '../../../protocol/blueprints/types.ts'
import type { Row } from '../../../protocol/contract.ts'
import type { FieldError } from '../../../protocol/errors.ts'
import { faultsOf } from '../../../protocol/rules/schema-faults/faults.ts'
import type { Blueprint, FileResource } from './documents.ts'
import { type Fault, placeAt, placeText, segmentsOf } from './located.ts'

type Input = Readonly<Record<string, unknown>>
const ROOT = 'the resource'

/** The faults of the references of an input, which have one of three forms. */
function referenceFaults(type: ResourceTypeName, input: Input): FieldError[] {
  return Object.entries(resourceFacts[type].fields).flatMap(([name, { refers }]) => {
    const value = input[name]
    if (!refers || value === undefined) return []
    const references = refers.list
      ? (value as Input[]).map((one, index) => [`${name}[${index}]`, one] as const)
      : [[name, value as Input] as const]
    return references.flatMap(([field, one]) =>
      Object.keys(one).length === 1
        ? []
        : [{ field, message: 'give exactly one of id, key and blueprint_ref' }],
    )
  })
}
/** The faults by the rules of the row that creates the resource, with paths in the input. */
function ruleFaults(type: ResourceTypeName, input: Input): FieldError[] {
  const facts = resourceFacts[type]
  const wanted = Object.fromEntries(
    Object.entries(input)
      .filter(([name]) => Object.hasOwn(facts.fields, name))
      .map(([name, value]) => {
        const { refers } = facts.fields[name] ?? {}
        // Ids are not known yet.
        return [name, refers ? (refers.list ? [] : `=${refers.type}`) : value]
      }),
  )
  const [step] = stepsOf(type, wanted, undefined, [], false)
  const row = step && (api as Readonly<Record<string, Row>>)[step.row]
  const check = row?.shape.check as ((body: unknown) => readonly FieldError[]) | undefined
  const members = new Map(Object.keys(facts.fields).map((name) => [memberOf(facts, name), name]))
  return (check?.(step?.body) ?? []).map((fault) => ({
    ...fault,
    field: fault.field.replace(/^\w+/, (member) => members.get(member) ?? member),
  }))
}

function resourceFaults({ type, located }: FileResource): Fault[] {
  const input = located.value as Input
  const shape = faultsOf(resourceSchemas[type], input, ROOT)
  const found =
    shape.length > 0 ? shape : [...referenceFaults(type, input), ...ruleFaults(type, input)]
  return found.map(({ field, message }) => ({
    place: field === ROOT ? located.place : placeAt(located, segmentsOf(field)),
    message: `${field}: ${message}`,
  }))
}

/** Keys that occur twice, and names that must be unique in a project. */
function repeatFaults(resources: readonly FileResource[]): Fault[] {
  const seen = new Map<string, FileResource>()
  return resources.flatMap((resource): Fault[] => {
    const { type, located } = resource
    const { adopt, match } = resourceFacts[type]
    return ['key', ...(adopt === 'unique' ? [match] : [])].flatMap((member): Fault[] => {
      const value = located.members?.get(member)?.located.value
      if (typeof value !== 'string') return []
      const id = `${type} ${member} ${value}`
      const first = seen.get(id)
      if (!first) {
        seen.set(id, resource)
        return []
      }
      return [
        {
          place: placeAt(located, [member]),
          message:
            `${member}: ${JSON.stringify(value)} is already the ${member} of the ${type} at ` +
            placeText(placeAt(first.located, [member])),
        },
      ]
    })
  })
}

/** Returns all faults of a blueprint. */
export function blueprintFaults({ resources }: Blueprint): Fault[] {
  const counts = new Map<ResourceTypeName, number>()
  return [
    ...resources.flatMap(resourceFaults),
    ...repeatFaults(resources),
    ...resources.flatMap(({ type, located }) => {
      const count = (counts.get(type) ?? 0) + 1
      counts.set(type, count)
      return count === blueprintLimits.resources + 1
        ? [
            {
              place: located.place,
              message: `a blueprint has at most ${blueprintLimits.resources} resources of a type`,
            },
          ]
        : []
    }),
  ]
}
