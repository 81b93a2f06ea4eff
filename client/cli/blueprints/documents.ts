/**
 * Merges the documents of files into blueprints. A document with an identity (`namespace`,
 * `blueprint_key`) determines its own blueprint. Any other document belongs to the blueprint of the
 * nearest document with an identity. The search begins in the same file and continues in the same
 * folder and its ancestors. If it finds nothing, the document belongs to the only blueprint of the
 * other files. If no document at all has an identity, all documents form one blueprint without an
 * identity. Invariant: no resource is dropped. A document that cannot be assigned is reported as a
 * fault.
 */
import { FileHeader } from '../../../protocol/blueprints/file-schemas.ts'
import {
  type ArrayName,
  type ResourceTypeName,
  resourceTypes,
} from '../../../protocol/blueprints/resources.ts'
import type { ApplyRequest } from '../../../protocol/blueprints/schema.ts'
import { type Identity, identityOf, isSameIdentity } from '../../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { faultsOf } from '../../../protocol/rules/schema-faults/faults.ts'
import { closest } from '../../suggest.ts'
import {
  type Fault,
  type Located,
  type Place,
  placeAt,
  placeText,
  segmentsOf,
  withoutMembers,
} from './located.ts'

/**
 * A document with its file and the folder of the file. The search for the nearest document with an
 * identity ends at the folder `root`.
 */
export interface FileDocument {
  readonly located: Located
  readonly file: string
  readonly folder: string
  readonly root: string
}
/** Members that apply to all documents. They take precedence over those of the files. */
export interface Overrides {
  readonly namespace?: string
  readonly blueprint_key?: string
  readonly blueprint_version?: string
  readonly protect_resources?: boolean
}
export interface FileResource {
  readonly type: ResourceTypeName
  readonly located: Located
}
export interface Blueprint {
  readonly identity: Identity
  readonly blueprint_version?: string
  readonly protect_resources?: boolean
  readonly resources: readonly FileResource[]
}

const typeOfArray = new Map(resourceTypes.map((type) => [resourceFacts[type].array, type] as const))
interface Header {
  readonly located: Located
  /** The blueprint that the document identifies; undefined if it identifies none. */
  readonly identity: Identity | undefined
}
interface Part {
  readonly document: FileDocument
  readonly header?: Header
  readonly resources: readonly FileResource[]
}

function resourceOf(located: Located, faults: Fault[]): FileResource[] {
  const kind = located.members?.get('kind')?.located
  const type = resourceTypes.find((one) => one === kind?.value)
  if (type) return [{ type, located: withoutMembers(located, ['kind', '$schema']) }]
  const near = closest(String(kind?.value), resourceTypes)
  faults.push({
    place: placeAt(located, ['kind']),
    message:
      `kind: must be one of: ${resourceTypes.join(', ')}` +
      (near === undefined ? '' : `; did you mean ${near}?`),
  })
  return []
}

function partOf(document: FileDocument, faults: Fault[]): Part {
  const { located } = document
  if (located.members?.has('kind')) return { document, resources: resourceOf(located, faults) }
  const found = faultsOf(FileHeader, located.value, 'the document')
  if (found.length > 0) {
    faults.push(
      ...found.map(({ field, message }) => ({
        place: field === 'the document' ? located.place : placeAt(located, segmentsOf(field)),
        message: `${field}: ${message}`,
      })),
    )
    return { document, resources: [] }
  }
  const { members } = located
  const isNamed = members?.has('namespace') || members?.has('blueprint_key')
  const arrays = members?.get('resources')?.located.members ?? new Map()
  return {
    document,
    header: {
      located,
      identity: isNamed ? identityOf(located.value as Identity) : undefined,
    },
    resources: [...arrays].flatMap(([name, member]: [string, { located: Located }]) => {
      const type = typeOfArray.get(name as ArrayName)
      return type ? (member.located.items ?? []).map((item) => ({ type, located: item })) : []
    }),
  }
}

interface Named {
  readonly identity: Identity
  readonly part: Part
  readonly index: number
}
const distinct = (named: readonly Named[]): Named[] =>
  named.filter(
    ({ identity }, index) =>
      named.findIndex((other) => isSameIdentity(other.identity, identity)) === index,
  )
/** Yields the folder and its ancestors up to the root. */
function* foldersAbove(folder: string, root: string): Generator<string> {
  for (let at = folder; ; at = at.slice(0, at.search(/[\\/][^\\/]*$/))) {
    yield at
    if (at === root || !/[\\/]/.test(at)) return
  }
}

/** Finds the blueprint of a document without an identity. */
function blueprintOf(
  { document, resources, header }: Part,
  index: number,
  named: readonly Named[],
  faults: Fault[],
): Identity {
  const sameFile = named.filter(({ part }) => part.document.file === document.file)
  const before = sameFile.filter((one) => one.index < index).at(-1)
  const near = before ?? sameFile[0]
  if (near) return near.identity
  let found: Named[] = []
  for (const folder of foldersAbove(document.folder, document.root)) {
    found = distinct(named.filter(({ part }) => part.document.folder === folder))
    if (found.length > 0) break
  }
  if (found.length === 0) found = distinct(named)
  if (found.length > 1 && (resources.length > 0 || header)) {
    const places = found.map(({ part }) => placeText(part.document.located.place))
    faults.push({
      place: document.located.place,
      message:
        `the blueprint of these resources is ambiguous: ${places.join(' and ')} name different ` +
        'blueprints; put the resources into the file of their blueprint',
    })
  }
  return found[0]?.identity ?? {}
}

/** Returns the value of a member that all headers of a blueprint must share. Reports conflicts. */
function common(
  headers: readonly Header[],
  name: 'blueprint_version' | 'protect_resources',
  faults: Fault[],
): unknown {
  let first: { readonly value: unknown; readonly place: Place } | undefined
  for (const { located } of headers) {
    const member = located.members?.get(name)
    if (!member) continue
    const { value } = member.located
    first ??= { value, place: member.name }
    if (first.value !== value)
      faults.push({
        place: member.name,
        message: `${name}: differs from ${placeText(first.place)} of the same blueprint`,
      })
  }
  return first?.value
}

/** Merges documents into blueprints. Adds faults to `faults`. */
export function mergeDocuments(
  documents: readonly FileDocument[],
  overrides: Overrides,
  faults: Fault[],
): Blueprint[] {
  const parts = documents.map((document) => partOf(document, faults))
  const { namespace, blueprint_key } = overrides
  const overridden = (identity: Identity): Identity =>
    identityOf({
      ...identity,
      ...(namespace !== undefined && { namespace }),
      ...(blueprint_key !== undefined && { blueprint_key }),
    })
  const named = parts.flatMap((part, index): Named[] =>
    part.header?.identity ? [{ identity: overridden(part.header.identity), part, index }] : [],
  )
  const groups: { readonly identity: Identity; readonly parts: Part[] }[] = []
  for (const [index, part] of parts.entries()) {
    const identity = part.header?.identity
      ? overridden(part.header.identity)
      : overridden(blueprintOf(part, index, named, faults))
    const group = groups.find((one) => isSameIdentity(one.identity, identity))
    if (group) group.parts.push(part)
    else groups.push({ identity, parts: [part] })
  }
  return groups.map(({ identity, parts: own }) => {
    const headers = own.flatMap(({ header }) => header ?? [])
    const version = common(headers, 'blueprint_version', faults)
    const isProtected = common(headers, 'protect_resources', faults)
    const blueprint_version = overrides.blueprint_version ?? (version as string | undefined)
    const protect_resources = overrides.protect_resources ?? (isProtected as boolean | undefined)
    return {
      identity,
      ...(blueprint_version !== undefined && { blueprint_version }),
      ...(protect_resources !== undefined && { protect_resources }),
      resources: own.flatMap(({ resources }) => resources),
    }
  })
}

/**
 * Returns the request of a blueprint, and a function that locates a path of the request, such as
 * `resources.agents[3].name`, in the files.
 */
export function requestOf({ identity, resources, ...header }: Blueprint): {
  readonly request: ApplyRequest
  readonly placeOf: (path: string) => Place | undefined
} {
  const arrays = new Map<ArrayName, Located[]>()
  for (const { type, located } of resources) {
    const { array } = resourceFacts[type]
    const list = arrays.get(array) ?? []
    if (list.length === 0) arrays.set(array, list)
    list.push(located)
  }
  return {
    request: {
      ...identity,
      ...header,
      resources: Object.fromEntries(
        [...arrays].map(([name, list]) => [name, list.map(({ value }) => value)]),
      ),
    },
    placeOf: (path) => {
      const [first, array, index, ...rest] = segmentsOf(path)
      const resource =
        first === 'resources' && typeof index === 'number'
          ? arrays.get(array as ArrayName)?.[index]
          : undefined
      return resource && placeAt(resource, rest)
    },
  }
}
