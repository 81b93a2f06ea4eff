/** The page of the secrets of a project. Their values can be written but not read. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Empty, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { repeatedNames } from '../../form/value.ts'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { accessText as text } from './text.ts'

type Secret = CallReply<'secret.list'>['items'][number]
/** Name of the entry with the key that signs callbacks: 32 bytes in base64. */
const SIGNING_KEY = 'signing_key_b64'
const signingKey = (): string =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))

interface Entry {
  readonly id: number
  readonly name: string
  readonly value: string
}

function SecretForm({
  project,
  of,
  onClose,
}: {
  readonly project: string
  readonly of?: Secret
  readonly onClose: (stored: boolean) => void
}) {
  const [name, setName] = useState(of?.name ?? '')
  const [entries, setEntries] = useState<readonly Entry[]>(() =>
    (of?.entries ?? ['']).map((entry, id) => ({ id, name: entry, value: '' })),
  )
  const change = (id: number, part: Partial<Entry>) =>
    setEntries(entries.map((entry) => (entry.id === id ? { ...entry, ...part } : entry)))
  const add = (part: Partial<Entry> = {}) =>
    setEntries([
      ...entries.filter((entry) => entry.name !== '' || entry.value !== ''),
      { id: Math.max(-1, ...entries.map(({ id }) => id)) + 1, name: '', value: '', ...part },
    ])
  const repeated = repeatedNames(entries.map((entry) => entry.name))
  return (
    <FormDialog
      title={of ? text.newVersion : text.newSecret}
      action={text.save}
      disabled={repeated.size > 0}
      onSubmit={async () => {
        await call('secret.put', {
          project,
          secret_name: name,
          entries: Object.fromEntries(entries.map((entry) => [entry.name, entry.value])),
        })
        showDone(text.stored)
        onClose(true)
      }}
      onClose={() => onClose(false)}
    >
      {(faultOf) => (
        <>
          <TextField
            label={text.secretName}
            required
            maxLength={128}
            disabled={of !== undefined}
            spellcheck={false}
            autocomplete="off"
            fault={faultOf('secret_name')}
            value={name}
            onValue={setName}
          />
          <fieldset class="choices">
            <legend class="label">{text.entries}</legend>
            <div class="hint small soft">{text.valueHint}</div>
            {entries.map((entry) => (
              <div class="entry-line" key={entry.id}>
                <TextField
                  label={text.entry}
                  required
                  maxLength={128}
                  spellcheck={false}
                  autocomplete="off"
                  fault={repeated.has(entry.name) ? text.repeatedEntry : undefined}
                  value={entry.name}
                  onValue={(next) => change(entry.id, { name: next })}
                />
                <TextArea
                  label={text.value}
                  rows={2}
                  required
                  maxLength={8192}
                  spellcheck={false}
                  autocomplete="off"
                  fault={entry.name === '' ? undefined : faultOf(`entries.${entry.name}`)}
                  value={entry.value}
                  onValue={(value) => change(entry.id, { value })}
                />
                <IconButton
                  icon="trash"
                  label={text.removeEntry(entry.name)}
                  disabled={entries.length === 1}
                  onClick={() => setEntries(entries.filter(({ id }) => id !== entry.id))}
                />
              </div>
            ))}
            <div class="row">
              <Button icon="plus" onClick={() => add()}>
                {text.addEntry}
              </Button>
              {!entries.some((entry) => entry.name === SIGNING_KEY) && (
                <Button onClick={() => add({ name: SIGNING_KEY, value: signingKey() })}>
                  {text.generate}
                </Button>
              )}
            </div>
          </fieldset>
        </>
      )}
    </FormDialog>
  )
}

export default function SecretsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const { state, reload } = useQuery('secret.list', { project }, { kinds: ['secret'] })
  const [deleting, setDeleting] = useState<Secret>()
  const edited = currentUrl.value.query.get('edit')
  const openNew = () => setQuery({ edit: '*' }, { push: true })
  const columns: readonly Column<Secret>[] = [
    { name: text.name, cell: ({ name }) => <strong class="user-text">{name}</strong> },
    {
      name: text.entries,
      cell: ({ entries }) => <span class="mono user-text">{entries.join(', ')}</span>,
    },
    { name: text.version, number: true, cell: ({ version }) => version },
    { name: text.updated, cell: ({ updated_at }) => <Time at={updated_at} /> },
    { name: text.created, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: text.actions,
      cell: (secret) => (
        <Menu
          label={text.actionsOf(secret.name)}
          items={[
            {
              label: text.newVersion,
              icon: 'edit',
              onSelect: () => setQuery({ edit: secret.name }, { push: true }),
            },
            {
              label: text.deleteSecret,
              icon: 'trash',
              danger: true,
              onSelect: () => setDeleting(secret),
            },
          ]}
        />
      ),
    },
  ]
  const create = <PageAction label={text.newSecret} keys="n" onRun={openNew} />
  return (
    <Page
      title={text.secrets}
      actions={
        <>
          <CopyCall name="secret.list" input={{ project }} />
          {create}
        </>
      }
    >
      <p class="soft">{text.secretsHint}</p>
      <Show of={state.value} retry={reload}>
        {({ items }) => {
          const of = items.find(({ name }) => name === edited)
          return (
            <>
              {items.length === 0 ? (
                <Empty icon="secrets" title={text.noSecrets}>
                  <p>{text.noSecretsHint}</p>
                </Empty>
              ) : (
                <DataTable
                  label={text.secrets}
                  columns={columns}
                  items={items}
                  keyOf={({ name }) => name}
                />
              )}
              {edited !== null && (of || edited === '*') && (
                <SecretForm
                  project={project}
                  {...(of && { of })}
                  onClose={(stored) => {
                    setQuery({ edit: undefined })
                    if (stored) reload()
                  }}
                />
              )}
            </>
          )
        }}
      </Show>
      {deleting && (
        <Confirm
          title={text.deleteSecretTitle(deleting.name)}
          action={text.deleteSecret}
          danger
          onClose={() => setDeleting(undefined)}
          onConfirm={async () => {
            await call('secret.delete', { project, secret_name: deleting.name })
            showDone(text.removed)
            reload()
          }}
        >
          <p>{text.deleteSecretHint}</p>
        </Confirm>
      )}
    </Page>
  )
}
