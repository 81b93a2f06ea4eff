/**
 * What operators and administrators can do with a question: answer links, withdrawal and deletion.
 */
import { useState } from 'preact/hooks'
import { linkableTargets } from '../../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { type CallReply, call } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Dialog, Menu, type MenuItem } from '../../design/overlay.tsx'
import { usePeople } from '../../people/people.ts'
import { Who } from '../../people/who.tsx'
import { may } from '../../shell/session.ts'
import { isOpen } from './asked.ts'
import { inboxText as text } from './text.ts'

interface Props {
  readonly project: string
  readonly interaction: Interaction
}

function Links({ project, interaction, onClose }: Props & { readonly onClose: () => void }) {
  const [made, setMade] = useState<CallReply<'interaction.link'>['items']>()
  const { nameOf } = usePeople(project)
  const targets = linkableTargets(interaction)
  return (
    <Dialog title={text.links} onClose={onClose}>
      <p>{text.linksHint}</p>
      {targets.length === 0 && <p class="soft">{text.noLinks}</p>}
      <ul class="stack close">
        {(made ?? targets.map((id) => ({ target_user_id: id, url: '' }))).map(
          ({ target_user_id: id, url }) => {
            // A service without a public address returns relative links, which are resolved here.
            const address = url === '' ? '' : new URL(url, location.href).href
            return (
              <li key={id} class="row apart">
                <Who project={project} id={id} />
                {address !== '' && (
                  <span class="row grow question-link">
                    <code class="clip grow">{address}</code>
                    <CopyButton value={address} label={text.copyLink(nameOf(id) ?? id)} />
                  </span>
                )}
              </li>
            )
          },
        )}
      </ul>
      {!made && targets.length > 0 && (
        <div class="actions">
          <Button
            kind="primary"
            onClick={async () => {
              setMade((await call('interaction.link', { project, id: interaction.id })).items)
            }}
          >
            {text.makeLinks}
          </Button>
        </div>
      )}
    </Dialog>
  )
}

function Withdraw({
  project,
  interaction: { id },
  onDone,
  onClose,
}: Props & { readonly onDone: () => void; readonly onClose: () => void }) {
  const [reason, setReason] = useState('')
  return (
    <Confirm
      title={text.cancel}
      action={text.cancelAction}
      danger
      onClose={onClose}
      onConfirm={async () => {
        const said = reason.trim() !== '' && { reason: reason.trim() }
        await call('interaction.cancel', { project, id, ...said })
        showDone(text.cancelledDone)
        onDone()
      }}
    >
      <p>{text.cancelHint}</p>
      <TextField label={text.reasonField} maxLength={1024} value={reason} onValue={setReason} />
    </Confirm>
  )
}

/** Shows the menu of a question, or nothing to people who may only answer. */
export function QuestionActions({
  project,
  interaction,
  onChanged,
  onRemoved,
}: Props & { readonly onChanged: () => void; readonly onRemoved: () => void }) {
  const [open, setOpen] = useState<'links' | 'withdraw' | 'remove'>()
  const close = (): void => setOpen(undefined)
  const items: MenuItem[] = []
  if (may('project.admin') && interaction.status === 'pending')
    items.push({ label: text.links, icon: 'external', onSelect: () => setOpen('links') })
  if (may('runs.operate') && isOpen(interaction))
    items.push({
      label: text.cancel,
      icon: 'stop',
      danger: true,
      onSelect: () => setOpen('withdraw'),
    })
  if (may('runs.operate') && !isOpen(interaction))
    items.push({
      label: text.remove,
      icon: 'trash',
      danger: true,
      onSelect: () => setOpen('remove'),
    })
  if (items.length === 0) return null
  return (
    <>
      <Menu label={text.actions} items={items} />
      {open === 'links' && <Links project={project} interaction={interaction} onClose={close} />}
      {open === 'withdraw' && (
        <Withdraw project={project} interaction={interaction} onDone={onChanged} onClose={close} />
      )}
      {open === 'remove' && (
        <Confirm
          title={text.removeTitle}
          action={text.removeAction}
          danger
          onClose={close}
          onConfirm={async () => {
            await call('interaction.delete', { project, id: interaction.id })
            showDone(text.removed)
            onRemoved()
          }}
        >
          <p>{text.removeHint}</p>
        </Confirm>
      )}
    </>
  )
}
