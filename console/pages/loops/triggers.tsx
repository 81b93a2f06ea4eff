/** The triggers of a loop with their state, and the dialogs that edit and fire them. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Loop, type Trigger, triggerKey } from '../../../protocol/loops/schema.ts'
import type { CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { type Save, saverOf } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { Code, CopyButton } from '../../design/copy.tsx'
import { Icon, type IconName } from '../../design/icons.tsx'
import { showDone, showProblem } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Empty, Notice } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { now, Time } from '../../design/time.tsx'
import { may } from '../../shell/session.ts'
import { curlOfTrigger, isSigned, positionOf, standingOf } from './definition.ts'
import { FireDialog } from './fire.tsx'
import { NextTimes } from './schedule.tsx'
import { loopsText as text } from './text.ts'
import { TriggerDialog } from './trigger-dialog.tsx'
import { kindWords } from './words.ts'

type Standing = CallReply<'loop.triggers'>['items'][number]
const icons: Readonly<Record<Trigger['kind'], IconName>> = {
  http: 'webhooks',
  schedule: 'loops',
  event: 'star',
  manual: 'user',
}

const nameOf = ({ name, key, kind }: Trigger): string => name ?? key ?? kindWords[kind]

function About({ trigger }: { readonly trigger: Trigger }) {
  switch (trigger.kind) {
    case 'schedule': {
      const { cron, interval, timezone } = trigger.config
      return (
        <span>
          {cron !== undefined && <code class="user-text">{cron}</code>}{' '}
          {interval !== undefined && text.every(interval)}
          {timezone !== undefined && text.in(timezone)}
        </span>
      )
    }
    case 'event': {
      const { event_type, source_id, condition } = trigger.config
      return (
        <span class="user-text">
          {text.forEvents(event_type)} {source_id !== undefined && text.fromSource(source_id)}{' '}
          {condition !== undefined && (
            <>
              {text.when} <code class="user-text">{condition}</code>
            </>
          )}
        </span>
      )
    }
    case 'http':
      return null
    default:
      return <span>{text.byHand}</span>
  }
}

function HttpAddress({
  loop,
  trigger,
  index,
  standing,
}: {
  readonly loop: Loop
  readonly trigger: Trigger & { readonly kind: 'http' }
  readonly index: number
  readonly standing: Standing | undefined
}) {
  const handle = trigger.config?.http_handle ?? standing?.id
  if (handle === undefined) return null
  const address = `${location.origin}/v1/triggers/http/${handle}`
  const signed = isSigned(loop, trigger, index)
  const product = document.documentElement.dataset['product'] ?? ''
  return (
    <div class="stack close">
      <div class="row">
        <code class="user-text">{address}</code>
        <CopyButton value={address} />
      </div>
      <details>
        <summary class="small">{text.withCurl}</summary>
        {signed && <p class="small soft">{text.signedHint}</p>}
        <Code>{curlOfTrigger(address, signed, product)}</Code>
      </details>
    </div>
  )
}

function TriggerLine({
  project,
  loop,
  trigger,
  index,
  standing,
  onChange,
  onEdit,
  onFire,
}: {
  readonly project: string
  readonly loop: Loop
  readonly trigger: Trigger
  readonly index: number
  readonly standing: Standing | undefined
  readonly onChange: (change: 'toggle' | 'remove') => unknown
  readonly onEdit: () => void
  readonly onFire: () => void
}) {
  const isEnabled = trigger.enabled !== false
  const name = nameOf(trigger)
  const { condition_faults, last_condition_fault, skipped_starts, last_skipped_start } =
    standing ?? {}
  return (
    <li>
      <Icon name={icons[trigger.kind]} />
      <div class="grow stack close">
        <div class="row">
          <strong class="user-text">{name}</strong>
          <Badge>{kindWords[trigger.kind]}</Badge>
          {!isEnabled && <Badge tone="warn">{text.disabled}</Badge>}
        </div>
        <About trigger={trigger} />
        {trigger.kind === 'http' && (
          <HttpAddress loop={loop} trigger={trigger} index={index} standing={standing} />
        )}
        {trigger.kind === 'schedule' && isEnabled && loop.status === 'active' && (
          <NextTimes project={project} schedule={trigger.config} first={standing?.next_fire_at} />
        )}
        {condition_faults !== undefined && last_condition_fault && (
          <Notice tone="warn">
            <span class="user-text">
              {text.conditionFaults(condition_faults, last_condition_fault.message)}
            </span>
          </Notice>
        )}
        {skipped_starts !== undefined && last_skipped_start && (
          <Notice tone="warn">
            <span class="user-text">
              {text.skipped(skipped_starts)} {last_skipped_start.reason} (
              <Time at={last_skipped_start.at} relative />)
            </span>
          </Notice>
        )}
      </div>
      <div class="row">
        {may('runs.operate') && standing && (
          <Button icon="start" onClick={onFire}>
            {text.fire}
          </Button>
        )}
        {may('project.edit') && (
          <Menu
            label={designText.about(designText.moreActions, name)}
            items={[
              { label: text.editTrigger, icon: 'edit', onSelect: onEdit },
              {
                label: isEnabled ? text.disable : text.enable,
                icon: isEnabled ? 'stop' : 'check',
                onSelect: () => onChange('toggle'),
              },
              {
                label: text.removeTrigger,
                icon: 'trash',
                danger: true,
                onSelect: () => onChange('remove'),
              },
            ]}
          />
        )}
      </div>
    </li>
  )
}

/**
 * Delay after a scheduled time before the next one is loaded, so that the trigger can fire first.
 */
const FIRED_MS = 2000

/** An open dialog. Other people may change the loop while it is open. */
interface Opened {
  readonly dialog: 'edit' | 'fire' | 'remove'
  /** The trigger when the dialog was opened; undefined for a new one. */
  readonly trigger: Trigger | undefined
  /** The position of the trigger when the dialog was opened. */
  readonly index: number
  /** Saves the loop, unless its triggers were changed after the dialog was opened. */
  readonly saveLoop: Save
}

/** Closes a dialog whose trigger was removed or changed by another person, with a message. */
function Gone({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  useEffect(() => {
    showProblem(text.triggerGone(name))
    onClose()
  }, [])
  return null
}

/** Shows the triggers. Each change creates a new version of the loop. */
export function Triggers({ project, loop }: { readonly project: string; readonly loop: Loop }) {
  const { triggers = [], id } = loop
  const { state, reload } = useQuery('loop.triggers', { project, id }, { kinds: ['loop', 'event'] })
  const standings = state.value.data?.items ?? []
  const [opened, setOpened] = useState<Opened>()
  // The saved loop may be shown before the response to the request arrives.
  const isSaving = useRef(false)
  const next = Math.min(
    ...standings.map(({ next_fire_at }) => Date.parse(next_fire_at ?? '')).filter(Number.isFinite),
  )
  // Once the earliest of the next scheduled times has passed, the list is reloaded.
  const isPast = Number.isFinite(next) && next + FIRED_MS < now.value
  useEffect(() => {
    if (isPast) reload()
  }, [isPast])
  const save = async (changed: readonly Trigger[], saveLoop = saverOf(loop)): Promise<void> => {
    isSaving.current = true
    try {
      await saveLoop('loop.update', { project, id, triggers: [...changed] })
    } finally {
      isSaving.current = false
    }
    showDone(text.triggerSaved)
  }
  const open = (dialog: Opened['dialog'], index: number): void =>
    setOpened({ dialog, trigger: triggers[index], index, saveLoop: saverOf(loop) })
  const add = may('project.edit') && (
    <Button icon="plus" onClick={() => open('edit', triggers.length)}>
      {text.addTrigger}
    </Button>
  )
  return (
    <section class="card">
      <header>
        <h2>{text.triggers}</h2>
        {triggers.length > 0 && add}
      </header>
      {triggers.length === 0 ? (
        <Empty icon="loops" title={text.noTriggers}>
          <p>{text.noTriggersHint}</p>
          {add}
        </Empty>
      ) : (
        <ul class="triggers">
          {triggers.map((trigger, index) => (
            <TriggerLine
              key={triggerKey(trigger, index)}
              project={project}
              loop={loop}
              trigger={trigger}
              index={index}
              standing={standingOf(trigger, index, standings)}
              onEdit={() => open('edit', index)}
              onFire={() => open('fire', index)}
              onChange={(change) =>
                change === 'remove'
                  ? open('remove', index)
                  : save(triggers.with(index, { ...trigger, enabled: trigger.enabled === false }))
              }
            />
          ))}
        </ul>
      )}
      {opened && (
        <OpenDialog
          project={project}
          loop={loop}
          opened={opened}
          standings={standings}
          isSaving={isSaving.current}
          onSave={save}
          onClose={() => setOpened(undefined)}
        />
      )}
    </section>
  )
}

function OpenDialog({
  project,
  loop,
  opened: { dialog, trigger, index, saveLoop },
  standings,
  isSaving,
  onSave,
  onClose,
}: {
  readonly project: string
  readonly loop: Loop
  readonly opened: Opened
  readonly standings: readonly Standing[]
  readonly isSaving: boolean
  readonly onSave: (triggers: readonly Trigger[], saveLoop?: Save) => Promise<void>
  readonly onClose: () => void
}) {
  const { triggers = [] } = loop
  const at = trigger ? positionOf(trigger, index, triggers) : -1
  if (dialog === 'edit')
    return (
      <TriggerDialog
        project={project}
        trigger={trigger}
        index={at === -1 ? triggers.length : at}
        onClose={onClose}
        onSave={(made) =>
          onSave(at === -1 ? [...triggers, made] : triggers.with(at, made), saveLoop)
        }
      />
    )
  const current = triggers[at]
  if (!current)
    return trigger && !isSaving ? <Gone name={nameOf(trigger)} onClose={onClose} /> : null
  if (dialog === 'remove')
    return (
      <Confirm
        title={text.removeTriggerTitle(nameOf(current))}
        action={text.removeTrigger}
        danger
        onClose={onClose}
        onConfirm={() => onSave(triggers.toSpliced(at, 1))}
      >
        <About trigger={current} />
        <p>{text.removeTriggerHint}</p>
      </Confirm>
    )
  const standing = standingOf(current, at, standings)
  if (!standing) return null
  return (
    <FireDialog
      project={project}
      loop={loop}
      trigger={standing.id}
      name={nameOf(current)}
      onClose={onClose}
    />
  )
}
