import { Component, type ReactNode } from "preact/compat";
import { isPartMissing } from "../api/problems";
import { Failure } from "../ui/states";

/** Catches what a part of the page throws, so that the rest stays. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    const { error } = this.state;
    const retry = () => (isPartMissing(error) ? location.reload() : this.setState({ error: null }));
    return <Failure error={error} retry={retry} />;
  }
}
