/** Dialogs and menus, based on native elements that manage the focus. */
import type { ComponentChildren, ComponentProps } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { guardLeaving } from '../router/router.ts'
import { Button, IconButton } from './button.tsx'
import { Icon, type IconName } from './icons.tsx'
import { showError } from './notify.ts'
import { designText as text } from './text.ts'

/**
 * A modal dialog, which is open while it is rendered. After input in its form, the user must
 * confirm before leaving the page, for example by a link, by the browser history or by closing the
 * tab, and before closing the dialog with Escape.
 */
export function Dialog({
  title,
  onClose,
  wide = false,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly wide?: boolean
  readonly children: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isEntered = useRef(false)
  useLayoutEffect(
    () =>
      guardLeaving(() => (isEntered.current ? text.leave : undefined), {
        calls: false,
        queries: true,
      }),
    [],
  )
  const cancel = (): void => {
    if (!isEntered.current || confirm(text.leave)) onClose()
    else if (element.current?.open === false) element.current.showModal()
  }
  // Opens the dialog before the browser paints, so that the next key press reaches it.
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    // In a dialog with a form, the first field receives the focus.
    dialog?.querySelector<HTMLElement>('form :is(input, textarea, select):enabled')?.focus()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onInput={({ target, currentTarget }) => {
        // The form of an inner dialog belongs to that dialog.
        const form = target instanceof Element ? target.closest('form') : null
        if (form?.closest('dialog') === currentTarget) isEntered.current = true
      }}
      // Escape closes only the dialog, so outer elements must not receive the key.
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.stopPropagation()
      }}
      // The cancellation of a file selection bubbles from its input, but concerns no dialog.
      onCancel={(event) => {
        if (event.target !== event.currentTarget || !event.cancelable) return
        event.preventDefault()
        cancel()
      }}
      // At the second Escape in a row, the browser closes the dialog, whose cancellation then
      // cannot be prevented.
      onClose={() => {
        if (element.current?.open === false) cancel()
      }}
    >
      <div class="inside">
        <div class="row apart">
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label={text.close} onClick={onClose} />
        </div>
        {children}
      </div>
    </dialog>
  )
}

/**
 * The buttons at the end of a dialog: `children`, a button that cancels, and the primary button
 * with the text `action`. All other props apply to the primary button.
 */
export const DialogActions = ({
  action,
  onClose,
  children,
  ...primary
}: Omit<ComponentProps<typeof Button>, 'kind' | 'children'> & {
  readonly action: string
  readonly onClose: () => void
  readonly children?: ComponentChildren
}) => (
  <div class="actions">
    {children}
    <Button onClick={onClose}>{text.cancel}</Button>
    <Button kind="primary" {...primary}>
      {action}
    </Button>
  </div>
)

/** Asks for confirmation before an action that cannot be undone. */
export function Confirm({
  title,
  children,
  action,
  danger = false,
  onConfirm,
  onClose,
}: {
  readonly title: string
  readonly children?: ComponentChildren
  /** Text of the button that confirms. */
  readonly action: string
  readonly danger?: boolean
  /** May return a promise. The dialog then closes when the promise is fulfilled. */
  readonly onConfirm: () => unknown
  readonly onClose: () => void
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <DialogActions
        action={action}
        danger={danger}
        onClose={onClose}
        onClick={async () => {
          await onConfirm()
          onClose()
        }}
      />
    </Dialog>
  )
}

/** An entry of a menu: an action or a link. */
export interface MenuItem {
  readonly label: string
  readonly icon?: IconName
  readonly danger?: boolean
  readonly disabled?: boolean
  readonly href?: string
  readonly onSelect?: () => unknown
}

/**
 * Gap in pixels between the menu and its button, and minimum distance of the menu from the edges of
 * the window.
 */
const GAP_PX = 4
/** A button that opens a list of actions. Arrow keys move within the list, Escape closes it. */
export function Menu({
  label,
  icon = 'more',
  items,
  children,
}: {
  readonly label: string
  readonly icon?: IconName
  readonly items: readonly MenuItem[]
  /** Content of the button; by default only the icon. */
  readonly children?: ComponentChildren
}) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const entries = (): HTMLElement[] => [
    ...(list.current?.querySelectorAll<HTMLElement>('[role=menuitem]:not(:disabled)') ?? []),
  ]
  const move = (event: KeyboardEvent): void => {
    const all = entries()
    const at = all.indexOf(document.activeElement as HTMLElement)
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key]
    if (next === undefined) return
    event.preventDefault()
    all[(next + all.length) % all.length]?.focus()
  }
  const opened = (open: boolean): void => {
    const around = button.current?.getBoundingClientRect()
    const element = list.current
    button.current?.setAttribute('aria-expanded', String(open))
    if (!open || !around || !element) return
    const { offsetWidth: width, offsetHeight: height } = element
    const below = around.bottom + GAP_PX + height <= innerHeight
    const top = below ? around.bottom + GAP_PX : around.top - GAP_PX - height
    element.style.top = `${Math.max(GAP_PX, top)}px`
    element.style.left = `${Math.max(GAP_PX, Math.min(around.left, innerWidth - width - GAP_PX))}px`
    entries()[0]?.focus()
  }
  return (
    <div class="menu">
      <button
        ref={button}
        type="button"
        class={children ? 'button quiet' : 'button quiet icon'}
        aria-label={children ? undefined : label}
        title={label}
        aria-haspopup="menu"
        aria-expanded="false"
        popovertarget={id}
      >
        {children ?? <Icon name={icon} />}
      </button>
      <div
        id={id}
        ref={list}
        class="menu-list"
        role="menu"
        aria-label={label}
        popover="auto"
        onKeyDown={move}
        onToggle={(event) => opened((event as unknown as ToggleEvent).newState === 'open')}
      >
        {items.map((item) => (
          <Entry
            key={item.href ?? item.label}
            item={item}
            close={() => list.current?.hidePopover()}
          />
        ))}
      </div>
    </div>
  )
}

function Entry({ item, close }: { readonly item: MenuItem; readonly close: () => void }) {
  const { label, icon, danger, disabled, href, onSelect } = item
  const look = danger ? 'menu-item danger' : 'menu-item'
  const content = (
    <>
      {icon && <Icon name={icon} />}
      <span class="user-text">{label}</span>
    </>
  )
  return href !== undefined ? (
    <a class={look} role="menuitem" href={href} onClick={close}>
      {content}
    </a>
  ) : (
    <button
      type="button"
      class={look}
      role="menuitem"
      disabled={disabled}
      onClick={() => {
        close()
        void Promise.resolve(onSelect?.()).catch(showError)
      }}
    >
      {content}
    </button>
  )
}
