/** The dialogue of an act: it explains the act, asks for a reason, and sends it once. Enter never confirms. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isRefusal, NoAnswer } from "../api/request.ts";
import { type Act, useAct } from "../api/use-act.ts";
import { useTexts } from "../texts/index.ts";
import { useErrorText } from "./loaded.tsx";
import { toast } from "./toasts.tsx";

export interface ActRequest<T = unknown> {
  readonly title: string;
  /** The effect, and whether it can be undone. */
  readonly text?: ComponentChildren;
  readonly fields?: readonly Field[];
  readonly confirm: string;
  readonly isDangerous?: boolean;
  /** The operator must type this before the act can be confirmed. */
  readonly typeToConfirm?: string;
  readonly toAct: (values: Readonly<Record<string, string>>, reason: string) => Act;
  readonly done?: (result: T) => string | undefined;
  /** What is left to do: the dialogue stays open, and its button repeats the act. */
  readonly incomplete?: (result: T) => string | undefined;
  readonly initialReason?: string;
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly options?: readonly (readonly [string, string])[];
  readonly isOptional?: boolean;
  readonly pattern?: string;
  /** The value of "checks" is the chosen options, with spaces between. */
  readonly type?: "text" | "datetime-local" | "checks";
  readonly initial?: string;
}

const reasonMax = 500;

export function ActDialog({ request, close }: { readonly request: ActRequest<never>; readonly close: () => void }) {
  const t = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  const { title, text, fields = [], confirm, isDangerous, typeToConfirm, toAct, done } = request;
  const { isRunning, error, run } = useAct<never>();
  const [reason, setReason] = useState(request.initialReason ?? "");
  const [typed, setTyped] = useState("");
  const [left, setLeft] = useState<string>();
  const [values, setValues] = useState<Readonly<Record<string, string>>>(
    Object.fromEntries(
      fields.map(({ name, initial, options, type }) => [
        name,
        initial ?? (type === "checks" ? "" : options?.[0]?.[0]) ?? "",
      ]),
    ),
  );
  useLayoutEffect(() => dialog.current?.showModal(), []);

  const isComplete =
    reason.trim() !== "" &&
    fields.every(({ name, isOptional, pattern }) => {
      const value = values[name] ?? "";
      return value === "" ? isOptional === true : !pattern || new RegExp(pattern).test(value);
    }) &&
    (typeToConfirm === undefined || typed === typeToConfirm);

  async function act(): Promise<void> {
    const result = await run(toAct(values, reason.trim()));
    if (result === undefined) return;
    const left = request.incomplete?.(result);
    setLeft(left);
    if (left !== undefined) return;
    const message = done?.(result) ?? t.done;
    toast(message);
    close();
  }

  return (
    <dialog
      ref={dialog}
      class="act"
      aria-labelledby="act-title"
      onClose={close}
      onCancel={(event) => isRunning && event.preventDefault()}
    >
      <h2 id="act-title">{title}</h2>
      {text && <div class="act-text">{text}</div>}
      {fields.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          value={values[field.name] ?? ""}
          onValue={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
      <label>
        {t.reason}
        <textarea
          id="reason"
          rows={2}
          maxLength={reasonMax}
          value={reason}
          placeholder={t.reasonHint}
          autofocus
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
      {typeToConfirm !== undefined && (
        <label>
          {t.typeToConfirm(typeToConfirm)}
          <input
            type="text"
            autocomplete="off"
            value={typed}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
      )}
      {error && <ActError error={error} />}
      {left !== undefined && !error && (
        <p class="banner warn" role="alert">
          {left}
        </p>
      )}
      <div class="dialog-buttons">
        <button type="button" onClick={close} disabled={isRunning}>
          {t.cancel}
        </button>
        <button
          type="button"
          class={isDangerous ? "danger" : "primary"}
          onClick={act}
          disabled={isRunning || !isComplete}
          aria-busy={isRunning}
        >
          {confirm}
        </button>
      </div>
    </dialog>
  );
}

interface FieldInputProps {
  readonly field: Field;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function FieldInput(props: FieldInputProps) {
  const { field, value, onValue } = props;
  const { name, label, options, isOptional, type = "text", pattern } = field;
  const t = useTexts();
  const id = `field-${name}`;
  if (type === "checks") return <Checks {...props} />;
  return (
    <label for={id}>
      {label} {isOptional && <span class="muted">{t.optional}</span>}
      {options ? (
        <select id={id} name={name} value={value} onChange={({ currentTarget }) => onValue(currentTarget.value)}>
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          name={name}
          type={type}
          value={value}
          autocomplete="off"
          {...(pattern && { pattern })}
          onInput={({ currentTarget }) => onValue(currentTarget.value)}
        />
      )}
    </label>
  );
}

function Checks({ field: { label, options = [] }, value, onValue }: FieldInputProps) {
  const chosen = value.split(" ").filter((each) => each !== "");
  const toggle = (option: string, isChosen: boolean) =>
    onValue([...chosen.filter((each) => each !== option), ...(isChosen ? [option] : [])].join(" "));
  return (
    <fieldset class="checks">
      <legend>{label}</legend>
      {options.map(([option, text]) => (
        <label key={option} class="check">
          <input
            type="checkbox"
            checked={chosen.includes(option)}
            onChange={({ currentTarget }) => toggle(option, currentTarget.checked)}
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** The dialogue stays open with its values, and pressing its button again is safe. */
function ActError({ error }: { readonly error: Error }) {
  const t = useTexts();
  const text = useErrorText(error);
  if (isRefusal(error, "reauthentication-required")) {
    const href = `/login?reauthenticate=yes&returnTo=${encodeURIComponent("/console/logged-in")}`;
    return (
      <p class="banner warn" role="alert">
        {t.freshLogin}{" "}
        <a href={href} target="_blank" rel="noreferrer">
          {t.logInAgain}
        </a>
      </p>
    );
  }
  return (
    <p class="banner bad" role="alert">
      {error instanceof NoAnswer ? t.noAnswerToAct : text}
    </p>
  );
}

/** A button that opens the dialogue of its act. */
export function ActButton<T>(props: {
  readonly request: ActRequest<T>;
  readonly children: string;
  readonly class?: string;
  readonly disabled?: boolean;
}) {
  const { request, children, class: look = "", disabled = false } = props;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class={look} disabled={disabled} onClick={() => setOpen(true)}>
        {children}
      </button>
      {isOpen && <ActDialog request={request as unknown as ActRequest<never>} close={() => setOpen(false)} />}
    </>
  );
}
