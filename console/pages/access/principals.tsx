/** The tab that lists either the people or the services and agents of a project. */
import { useState } from 'preact/hooks'
import type { PrincipalRecord } from '../../../protocol/access/rows.ts'
import { call } from '../../api/client.ts'
import { type Listing, useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { SearchField } from '../../design/field.tsx'
import { Listed } from '../../design/listed.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu, type MenuItem } from '../../design/overlay.tsx'
import { Badge, Empty } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { place, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { PersonTokens } from './keys/person-tokens.tsx'
import { PrincipalForm } from './principal-form.tsx'
import { useRoles } from './roles-of.ts'
import { accessText as text } from './text.ts'

interface Asked {
  readonly what: 'disable' | 'remove'
  readonly of: PrincipalRecord
}

/** Returns whether a text occurs in the name, e-mail address or id of a principal. */
const matches = ({ name, email = '', id }: PrincipalRecord, typed: string): boolean =>
  `${name}\n${email}\n${id}`.toLowerCase().includes(typed.trim().toLowerCase())

function Names({ of: { name, email, description, id } }: { readonly of: PrincipalRecord }) {
  return (
    <>
      <strong class="user-text">{name}</strong>
      {email && <div class="user-text">{email}</div>}
      {description && <div class="small soft user-text">{description}</div>}
      <div class="small soft mono id-line">
        <span class="user-text">{id}</span>
        <CopyButton value={id} />
      </div>
    </>
  )
}

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
  const [asked, setAsked] = useState<Asked>()
  const { query } = place.value
  const typed = query.get('q') ?? ''
  const tokensOf = query.get('tokens')
  const mayCreate = may('project.admin')
  const isNew = mayCreate && query.get('new') !== null
  const update = async (of: PrincipalRecord, state: 'active' | 'disabled'): Promise<void> => {
    await call(person ? 'user.update' : 'principal.update', { project, id: of.id, state })
    showDone(text.saved)
    list.reload()
  }
  const actionsOf = (of: PrincipalRecord): readonly MenuItem[] => {
    const tokens =
      person && may('access.manage') && of.state !== 'deleted'
        ? [
            {
              label: text.tokens,
              icon: 'keys' as const,
              onSelect: () => setQuery({ tokens: of.id }, { push: true }),
            },
          ]
        : []
    if (!may('project.admin') || of.kind === 'system' || of.state === 'deleted') return tokens
    return [
      { label: text.edit, icon: 'edit', onSelect: () => setEditing(of) },
      ...tokens,
      of.state === 'active'
        ? { label: text.disable, icon: 'stop', onSelect: () => setAsked({ what: 'disable', of }) }
        : { label: text.enable, icon: 'check', onSelect: () => update(of, 'active') },
      ...(of.kind === 'agent'
        ? []
        : [
            {
              label: text.remove,
              icon: 'trash' as const,
              danger: true,
              onSelect: () => setAsked({ what: 'remove', of }),
            },
          ]),
    ]
  }
  const roleName = (id: string) => roles.find((role) => role.id === id)?.name ?? id
  const columns: readonly Column<PrincipalRecord>[] = [
    { name: text.name, cell: (of) => <Names of={of} /> },
    {
      name: text.roles,
      cell: ({ role_ids = [] }) =>
        role_ids.length === 0 ? (
          <span class="soft">{text.none}</span>
        ) : (
          <span class="row tight">
            {role_ids.map((id) => (
              <Badge key={id}>
                <span class="user-text">{roleName(id)}</span>
              </Badge>
            ))}
          </span>
        ),
    },
    {
      name: text.state,
      cell: ({ state }) => (
        <Badge tone={state === 'active' ? 'good' : 'warn'}>
          {state === 'active' ? text.active : state === 'disabled' ? text.disabled : state}
        </Badge>
      ),
    },
    person
      ? {
          name: text.signIn,
          cell: ({ identity }) => (
            <span class="user-text">
              {identity ? `${text.provider} ${URL.parse(identity.issuer)?.host ?? ''}` : text.token}
            </span>
          ),
        }
      : { name: text.kind, cell: ({ kind }) => kind },
    { name: text.created, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: text.actions,
      cell: (of) => {
        const items = actionsOf(of)
        return items.length === 0 ? null : <Menu label={text.actionsOf(of.name)} items={items} />
      },
    },
  ]
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
              columns={columns}
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
      {asked && (
        <Confirm
          title={(asked.what === 'disable' ? text.disableTitle : text.removeTitle)(asked.of.name)}
          action={asked.what === 'disable' ? text.disable : text.remove}
          danger
          onClose={() => setAsked(undefined)}
          onConfirm={async () => {
            const { id } = asked.of
            if (asked.what === 'disable') return update(asked.of, 'disabled')
            await call(person ? 'user.delete' : 'principal.delete', { project, id })
            showDone(text.removed)
            list.reload()
          }}
        >
          <p>
            {asked.what === 'disable'
              ? text.disableHint
              : person
                ? text.removePerson
                : text.removeService}
          </p>
        </Confirm>
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
