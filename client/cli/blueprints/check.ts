/**
 * Checks blueprints offline: each resource against its schema, and against the rules of the API row
 * that creates it. The service runs the same code from `protocol/`. All faults are reported.
 */

import { readPermissions } from '../../../protocol/access/roles.ts'
import { api } from '../../../protocol/api.ts'
import { checkApply } from '../../../protocol/blueprints/check.ts'
import { type ResourceTypeName, resourceSchemas } from '../../../protocol/blueprints/resources.ts'
import { stepsOf } from '../../../protocol/blueprints/steps.ts'
import { memberOf, resourceFacts } from '../../../protocol/blueprints/types.ts'
import type { Row } from '../../../protocol/contract.ts'
import type { FieldError } from '../../../protocol/errors.ts'
import { faultsOf } from '../../../protocol/rules/schema-faults/faults.ts'
import { type Blueprint, type FileResource, requestOf } from './documents.ts'
import { type Fault, placeAt, placeText, segmentsOf } from './located.ts'

type Input = Readonly<Record<string, unknown>>
const ROOT = 'the resource'

/** Checks that each reference has exactly one of its three forms. */
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
/** Checks the rules of the row that creates the resource. Paths of faults refer to the input. */
function ruleFaults(type: ResourceTypeName, input: Input): FieldError[] {
  const facts = resourceFacts[type]
  const wanted = Object.fromEntries(
    Object.entries(input)
      .filter(([name]) => Object.hasOwn(facts.fields, name))
      .map(([name, value]) => {
        const { refers } = facts.fields[name] ?? {}
        // Ids are not known yet, so references are replaced with placeholders.
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

const placed = ({ located }: FileResource, faults: readonly FieldError[]): Fault[] =>
  faults.map(({ field, message }) => ({
    place: field === ROOT ? located.place : placeAt(located, segmentsOf(field)),
    message: `${field}: ${message}`,
  }))
const shapeFaults = (resource: FileResource): Fault[] =>
  placed(resource, faultsOf(resourceSchemas[resource.type], resource.located.value, ROOT))
/** Checks the permissions of a role. The brand of the service is unknown, so any brand is accepted. */
const permissionFaults = (type: ResourceTypeName, { permissions }: Input): readonly FieldError[] =>
  type === 'role' ? readPermissions((permissions ?? []) as readonly string[]).faults : []
/** Checks the references and rules of a resource that matches its schema. */
function ruleFaultsOf(resource: FileResource): Fault[] {
  const { type, located } = resource
  const input = located.value as Input
  return placed(resource, [
    ...referenceFaults(type, input),
    ...ruleFaults(type, input),
    ...permissionFaults(type, input),
  ])
}

/** Reports duplicate keys, and duplicate names of types whose names are unique in a project. */
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

function requestFaults(blueprint: Blueprint): Fault[] {
  const { request, placeOf } = requestOf(blueprint)
  const first = blueprint.resources[0]?.located.place
  return checkApply(request).flatMap(({ field, message }) => {
    const place = placeOf(field) ?? first
    return place
      ? [{ place, message: `${field.replace(/^resources\.\w+\[\d+\]\./, '')}: ${message}` }]
      : []
  })
}

/**
 * Returns all faults of a blueprint. The request as a whole is checked only if every resource
 * matches its schema.
 */
export function blueprintFaults(blueprint: Blueprint): Fault[] {
  const { resources } = blueprint
  const shapes = resources.map((one) => [one, shapeFaults(one)] as const)
  const isWellFormed = shapes.every(([, faults]) => faults.length === 0)
  return [
    ...shapes.flatMap(([one, faults]) => (faults.length > 0 ? faults : ruleFaultsOf(one))),
    ...repeatFaults(resources),
    ...(isWellFormed ? requestFaults(blueprint) : []),
  ]
}
