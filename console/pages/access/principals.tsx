/** The tab that lists either the people or the services and agents of a project. */
import { useState } from 'preact/hooks'
import type { PrincipalRecord } from '../../../protocol/access/rows.ts'
import { call } from '../../api/client.ts'
import { type Listing, useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { DataTable } from '../../design/data-table.tsx'
import { SearchField } from '../../design/field.tsx'
import { Listed } from '../../design/listed.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, type MenuItem } from '../../design/overlay.tsx'
import { Empty } from '../../design/states.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { PersonTokens } from './keys/person-tokens.tsx'
import { principalColumns } from './principal-columns.tsx'
import { PrincipalForm } from './principal-form.tsx'
import { useRoles } from './roles-of.ts'
import { accessText as text } from './text.ts'

/** A change to a principal that must be confirmed. */
interface Change {
  readonly kind: 'disable' | 'remove'
  readonly principal: PrincipalRecord
}

/** Returns whether a text occurs in the name, e-mail address or id of a principal. */
const matches = ({ name, email = '', id }: PrincipalRecord, typed: string): boolean =>
  `${name}\n${email}\n${id}`.toLowerCase().includes(typed.trim().toLowerCase())

/** Loads either the people or the services and agents of a project. */
function usePrincipals(project: string, person: boolean): Listing<PrincipalRecord> {
  const kinds = { kinds: ['principal', 'assignment', 'role'] }
  const people = useList(
    'user.list',
    person ? { project, include_disabled: true, limit: 100 } : undefined,
    kinds,
  )
  const others = useList(
    'principal.list',
    person ? undefined : { project, include_disabled: true, limit: 200 },
    kinds,
  )
  return person ? people : others
}

/** Lists the principals, with a search and a menu of actions for each. */
export function Principals({
  project,
  person,
}: {
  readonly project: string
  /** Whether people are listed. Otherwise services and agents are listed. */
  readonly person: boolean
}) {
  const list = usePrincipals(project, person)
  const roles = useRoles(project)
  const [editing, setEditing] = useState<PrincipalRecord>()
  const [change, setChange] = useState<Change>()
  const { query } = currentUrl.value
  const typed = query.get('q') ?? ''
  const tokensOf = query.get('tokens')
  const mayCreate = may('project.admin')
  const isNew = mayCreate && query.get('new') !== null
  const update = async ({ id }: PrincipalRecord, state: 'active' | 'disabled'): Promise<void> => {
    await call(person ? 'user.update' : 'principal.update', { project, id, state })
    showDone(text.saved)
    list.reload()
  }
  const perform = async ({ kind, principal }: Change): Promise<void> => {
    if (kind === 'disable') return update(principal, 'disabled')
    await call(person ? 'user.delete' : 'principal.delete', { project, id: principal.id })
    showDone(text.removed)
    list.reload()
  }
  const actionsOf = (principal: PrincipalRecord): readonly MenuItem[] =>
    menuItems(principal, person, {
      edit: () => setEditing(principal),
      showTokens: () => setQuery({ tokens: principal.id }, { push: true }),
      disable: () => setChange({ kind: 'disable', principal }),
      enable: () => update(principal, 'active'),
      remove: () => setChange({ kind: 'remove', principal }),
    })
  const create = mayCreate && (
    <Button kind="primary" icon="plus" onClick={() => setQuery({ new: '1' }, { push: true })}>
      {person ? text.addPerson : text.addService}
    </Button>
  )
  return (
    <div class="stack">
      <div class="row apart">
        <div class="list-search">
          <SearchField label={text.search} value={typed} onValue={(q) => setQuery({ q })} />
        </div>
        {create}
      </div>
      <Listed
        of={list}
        empty={
          <Empty icon="people" title={person ? text.noPeople : text.noServices}>
            <p>{person ? text.noPeopleHint : text.noServicesHint}</p>
          </Empty>
        }
      >
        {(all) => {
          const found = all.filter((one) => (person || one.kind !== 'user') && matches(one, typed))
          return found.length === 0 ? (
            <p class="soft" role="status">
              {typed === '' ? (person ? text.noPeople : text.noServices) : text.noMatch}
            </p>
          ) : (
            <DataTable
              label={person ? text.people : text.services}
              columns={principalColumns(person, roles, actionsOf)}
              items={found}
              keyOf={({ id }) => id}
            />
          )
        }}
      </Listed>
      {(isNew || editing) && (
        <PrincipalForm
          project={project}
          person={person}
          {...(editing && { of: editing })}
          onClose={(changed) => {
            setEditing(undefined)
            setQuery({ new: undefined })
            if (changed) list.reload()
          }}
        />
      )}
      {change && (
        <ConfirmChange
          change={change}
          person={person}
          onConfirm={() => perform(change)}
          onClose={() => setChange(undefined)}
        />
      )}
      {tokensOf !== null && person && (
        <PersonTokens
          project={project}
          id={tokensOf}
          onClose={() => setQuery({ tokens: undefined })}
        />
      )}
    </div>
  )
}

type PrincipalAction = 'edit' | 'showTokens' | 'disable' | 'enable' | 'remove'

/** Returns the actions that the signed-in person may perform on a principal. */
function menuItems(
  { kind, state }: PrincipalRecord,
  person: boolean,
  actions: Readonly<Record<PrincipalAction, () => void | Promise<void>>>,
): readonly MenuItem[] {
  const { edit, showTokens, disable, enable, remove } = actions
  const tokens: readonly MenuItem[] =
    person && may('access.manage') && state !== 'deleted'
      ? [{ label: text.tokens, icon: 'keys', onSelect: showTokens }]
      : []
  if (!may('project.admin') || kind === 'system' || state === 'deleted') return tokens
  return [
    { label: text.edit, icon: 'edit', onSelect: edit },
    ...tokens,
    state === 'active'
      ? { label: text.disable, icon: 'stop', onSelect: disable }
      : { label: text.enable, icon: 'check', onSelect: enable },
    ...(kind === 'agent'
      ? []
      : [{ label: text.remove, icon: 'trash' as const, danger: true, onSelect: remove }]),
  ]
}

/** The dialog that asks whether a principal is to be disabled or removed. */
function ConfirmChange({
  change: { kind, principal },
  person,
  onConfirm,
  onClose,
}: {
  readonly change: Change
  readonly person: boolean
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}) {
  const [title, action, hint] =
    kind === 'disable'
      ? [text.disableTitle, text.disable, text.disableHint]
      : [text.removeTitle, text.remove, person ? text.removePerson : text.removeService]
  return (
    <Confirm
      title={title(principal.name)}
      action={action}
      danger
      onClose={onClose}
      onConfirm={onConfirm}
    >
      <p>{hint}</p>
    </Confirm>
  )
}
