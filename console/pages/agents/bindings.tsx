/**
 * The messaging bindings of an agent: the conversations of connected accounts in which it answers.
 */

import { useState } from 'preact/hooks'
import { isolate } from '../../../client/isolate.ts'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Button } from '../../design/button.tsx'
import { Checkbox, SelectField, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Dialog, DialogActions } from '../../design/overlay.tsx'
import { Badge, Empty, Failure, Show } from '../../design/states.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { may } from '../../shell/session.ts'
import { agentsText as text } from './text.ts'

type Binding = CallReply<'agent.bindings'>['items'][number]

const PROVIDERS = ['slack', 'telegram', 'linear'].map((value) => ({ value, label: value }))
const DM_POLICIES = [
  { value: 'open', label: text.dmOpen },
  { value: 'allowlist', label: text.dmAllowlist },
  { value: 'disabled', label: text.dmDisabled },
]
const namesOf = (words: string): string[] => words.split(/[\s,]+/).filter((name) => name !== '')

const answersOf = ({ dms, mentions, all_messages }: Binding): string =>
  [dms && text.dms, mentions && text.mentions, all_messages && text.allMessages]
    .filter(Boolean)
    .join(' · ')

/** Lists the bindings of the agent `id`, and adds, changes and deletes them. */
export function Bindings({ project, id }: { readonly project: string; readonly id: string }) {
  const { state, reload } = useQuery('agent.bindings', { project, id }, { kinds: ['agent'] })
  const [edited, setEdited] = useState<Binding | 'new'>()
  const [deleted, setDeleted] = useState<Binding>()
  const mayEdit = may('project.edit')
  const add = mayEdit && (
    <Button icon="plus" onClick={() => setEdited('new')}>
      {text.bindingAdd}
    </Button>
  )
  return (
    <div class="stack">
      <Show of={state.value} retry={reload}>
        {({ items }) =>
          items.length === 0 ? (
            <section class="card">
              <Empty icon="channels" title={text.bindingsNone}>
                <p>{text.bindingsHint}</p>
                {add}
              </Empty>
            </section>
          ) : (
            <>
              <div class="row apart">
                <h2>{text.bindings}</h2>
                {add}
              </div>
              <ul class="card recent">
                {items.map((binding) => (
                  <li key={binding.id}>
                    <span class="grow">
                      <strong>{binding.provider}</strong>{' '}
                      <code class="user-text">{binding.integration_id}</code>{' '}
                      {!binding.enabled && <Badge>{text.off}</Badge>}
                      <div class="soft small user-text">
                        {[answersOf(binding), isolate(binding.channels.join(', '))]
                          .filter((part) => part !== '')
                          .join(' · ')}
                      </div>
                    </span>
                    {mayEdit && (
                      <>
                        <Button icon="edit" onClick={() => setEdited(binding)}>
                          {text.editShort}
                        </Button>
                        <Button icon="trash" danger onClick={() => setDeleted(binding)}>
                          {text.delete}
                        </Button>
                      </>
                    )}
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Show>
      {edited && (
        <BindingDialog
          project={project}
          agent={id}
          {...(edited !== 'new' && { binding: edited })}
          onClose={(saved) => {
            setEdited(undefined)
            if (saved) reload()
          }}
        />
      )}
      {deleted && (
        <Confirm
          title={text.deleteQuestion(`${deleted.provider} ${deleted.integration_id}`)}
          action={text.delete}
          danger
          onConfirm={async () => {
            await call('agent.delete_binding', { project, id, binding_id: deleted.id })
            showDone(text.bindingDeleted)
            reload()
          }}
          onClose={() => setDeleted(undefined)}
        />
      )}
    </div>
  )
}

function BindingDialog({
  project,
  agent,
  binding,
  onClose,
}: {
  readonly project: string
  readonly agent: string
  readonly binding?: Binding
  readonly onClose: (saved: boolean) => void
}) {
  const [provider, setProvider] = useState<Binding['provider']>(binding?.provider ?? 'slack')
  const [account, setAccount] = useState(binding?.integration_id ?? '')
  const [enabled, setEnabled] = useState(binding?.enabled ?? true)
  const [dms, setDms] = useState(binding?.dms ?? true)
  const [mentions, setMentions] = useState(binding?.mentions ?? true)
  const [all, setAll] = useState(binding?.all_messages ?? false)
  const [channels, setChannels] = useState(binding?.channels.join(', ') ?? '')
  const [policy, setPolicy] = useState<Binding['dm_policy']>(binding?.dm_policy ?? 'open')
  const [senders, setSenders] = useState(binding?.sender_allow.join(', ') ?? '')
  const [replaces, setReplaces] = useState(false)
  const { isChanged } = useChanged([
    enabled,
    dms,
    mentions,
    all,
    channels,
    policy,
    senders,
    replaces,
  ])
  const { attempt, errorBeside, faultOf } = useRefusal()
  const save = async (): Promise<void> => {
    await attempt(async () => {
      await call('agent.set_binding', {
        project,
        id: agent,
        provider,
        integration_id: account.trim(),
        enabled,
        dms,
        mentions,
        all_messages: all,
        channels: namesOf(channels),
        dm_policy: policy,
        sender_allow: namesOf(senders),
        ...(replaces && { replace_existing: true }),
        ...(binding?.model_route && { model_route: binding.model_route }),
        ...(binding?.compaction_policy && { compaction_policy: binding.compaction_policy }),
      })
      onClose(true)
    })
  }
  const remaining = errorBeside(
    'integration_id',
    'channels',
    ...(policy === 'allowlist' ? ['sender_allow'] : []),
  )
  return (
    <Dialog title={text.binding} onClose={() => onClose(false)}>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <SelectField
          label={text.provider}
          value={provider}
          choices={PROVIDERS}
          disabled={binding !== undefined}
          onValue={(value) => setProvider(value as Binding['provider'])}
        />
        <TextField
          label={text.account}
          hint={text.accountHint}
          value={account}
          disabled={binding !== undefined}
          fault={faultOf('integration_id')}
          onValue={setAccount}
        />
        <div class="stack close">
          <Checkbox label={text.enabled} checked={enabled} onChecked={setEnabled} />
          <Checkbox label={text.dms} checked={dms} onChecked={setDms} />
          <Checkbox label={text.mentions} checked={mentions} onChecked={setMentions} />
          <Checkbox label={text.allMessages} checked={all} onChecked={setAll} />
          <Checkbox label={text.replaces} checked={replaces} onChecked={setReplaces} />
        </div>
        <TextField
          label={text.channels}
          hint={text.channelsHint}
          value={channels}
          fault={faultOf('channels')}
          onValue={setChannels}
        />
        <SelectField
          label={text.dmPolicy}
          value={policy}
          choices={DM_POLICIES}
          onValue={(value) => setPolicy(value as Binding['dm_policy'])}
        />
        {policy === 'allowlist' && (
          <TextField
            label={text.senders}
            value={senders}
            fault={faultOf('sender_allow')}
            onValue={setSenders}
          />
        )}
        {remaining && <Failure error={remaining} />}
        <DialogActions
          onClose={() => onClose(false)}
          action={text.save}
          submit
          disabled={(binding !== undefined && !isChanged) || account.trim() === ''}
          onClick={save}
        />
      </form>
    </Dialog>
  )
}
